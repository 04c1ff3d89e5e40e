#include "boyd/files/tar.hpp"

#include "boyd/core/text.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace boyd::files {

namespace {

/// Where a header has its fields (POSIX.1-2017, pax, ustar Interchange Format).
struct field {
  std::size_t at;
  std::size_t size;
};
constexpr field name_field{0, 100};
constexpr field mode_field{100, 8};
constexpr field owner_field{108, 8};
constexpr field group_field{116, 8};
constexpr field size_field{124, 12};
constexpr field time_field{136, 12};
constexpr field sum_field{148, 8};
constexpr field type_field{156, 1};
constexpr field link_field{157, 100};
constexpr field magic_field{257, 8};
constexpr field prefix_field{345, 155};

constexpr std::string_view magic("ustar\0"
                                 "00",
                                 8);
constexpr char file_type = '0';
constexpr char old_file_type = '\0';
constexpr char link_type = '2';
constexpr char directory_type = '5';
constexpr char extension_type = 'x';
constexpr std::uint64_t largest_octal_size = (std::uint64_t{1} << 33) - 1;
constexpr std::size_t longest_extension = 64u << 10;
constexpr std::size_t longest_path = 4096;
constexpr int octal = 8;

std::string_view part(std::string_view block, field f) {
  return block.substr(f.at, f.size);
}

/// Up to the first NUL.
std::string text_in(std::string_view block, field f) {
  const auto whole = part(block, f);
  return std::string(whole.substr(0, whole.find('\0')));
}

void put(std::string& block, field f, std::string_view text) {
  block.replace(f.at, std::min(f.size, text.size()), text.substr(0, f.size));
}

void put_octal(std::string& block, field f, std::uint64_t n) {
  std::string digits(f.size - 1, '0');
  for (auto it = digits.rbegin(); it != digits.rend() && n > 0; ++it, n /= octal)
    *it = static_cast<char>('0' + n % octal);
  put(block, f, digits);
}

/// Blanks and NULs may stand around the digits; nothing for anything else.
std::optional<std::uint64_t> octal_in(std::string_view block, field f) {
  auto digits = part(block, f);
  digits = digits.substr(0, digits.find('\0'));
  digits = trim(digits);
  std::uint64_t n = 0;
  const auto [end, failed] =
      std::from_chars(digits.data(), digits.data() + digits.size(), n, octal);
  const bool whole = failed == std::errc{} && end == digits.data() + digits.size();
  return digits.empty() ? std::optional<std::uint64_t>(0) : whole ? std::optional(n) : std::nullopt;
}

/// The sum of all bytes, its own field counted as blanks.
std::uint64_t sum_of(std::string_view block) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool own = i >= sum_field.at && i < sum_field.at + sum_field.size;
    sum += own ? static_cast<unsigned char>(' ') : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

std::string header_block(const tar_entry& e, char type, std::uint64_t size) {
  std::string block(tar_block, '\0');
  put(block, name_field, e.path);
  put_octal(block, mode_field, e.mode);
  put_octal(block, owner_field, 0);
  put_octal(block, group_field, 0);
  put_octal(block, size_field, std::min(size, largest_octal_size));
  put_octal(block, time_field, static_cast<std::uint64_t>(std::max<std::int64_t>(e.modified, 0)));
  block[type_field.at] = type;
  put(block, link_field, e.target);
  put(block, magic_field, magic);
  put_octal(block, sum_field, sum_of(block));
  return block;
}

/// "LENGTH key=value\n", whose length counts itself.
std::string record(std::string_view key, std::string_view value) {
  const auto rest = key.size() + value.size() + 3;
  auto length = rest + 1;
  while (rest + std::to_string(length).size() != length)
    length = rest + std::to_string(length).size();
  return std::to_string(length) + " " + std::string(key) + "=" + std::string(value) + "\n";
}

/// What does not fit into the header.
std::string extension_of(const tar_entry& e) {
  std::string out;
  if (e.path.size() > name_field.size)
    out += record("path", e.path);
  if (e.target.size() > link_field.size)
    out += record("linkpath", e.target);
  if (e.size > largest_octal_size)
    out += record("size", std::to_string(e.size));
  return out;
}

tl::unexpected<error> damaged(const std::string& why) {
  return fail(errc::corrupt, "the archive is damaged: " + why);
}

/// What stood in an extension before the header that it is about.
struct extension {
  std::optional<std::string> path;
  std::optional<std::string> target;
  std::optional<std::uint64_t> size;
};

result<void> read_record(extension& to, std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos)
    return damaged("an extension has no value");
  const auto key = text.substr(0, equals);
  const auto value = text.substr(equals + 1);
  if (key == "path") {
    to.path = value;
  } else if (key == "linkpath") {
    to.target = value;
  } else if (key == "size") {
    std::uint64_t n = 0;
    const auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), n);
    if (failed != std::errc{} || end != value.data() + value.size())
      return damaged("a size is not a number");
    to.size = n;
  }
  return {}; // others say nothing about the content
}

result<void> read_extension(extension& to, std::string_view text) {
  while (!text.empty() && text.front() != '\0') {
    std::size_t length = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<std::size_t>(end - text.data());
    if (failed != std::errc{} || length < digits + 2 || length > text.size() ||
        text[digits] != ' ' || text[length - 1] != '\n')
      return damaged("an extension is unreadable");
    if (auto read = read_record(to, text.substr(digits + 1, length - digits - 2)); !read)
      return read;
    text.remove_prefix(length);
  }
  return {};
}

result<tar_entry> entry_of(std::string_view block, const extension& more) {
  tar_entry e;
  const auto prefix = text_in(block, prefix_field);
  e.path = more.path.value_or((prefix.empty() ? "" : prefix + "/") + text_in(block, name_field));
  while (e.path.ends_with('/'))
    e.path.pop_back();
  const auto size = octal_in(block, size_field);
  const auto mode = octal_in(block, mode_field);
  const auto time = octal_in(block, time_field);
  if (!size || !mode || !time)
    return damaged("a header has invalid numbers");
  e.mode = static_cast<unsigned>(*mode & 0777U);
  e.modified = static_cast<std::int64_t>(*time);
  const char type = block[type_field.at];
  if (type == file_type || type == old_file_type)
    e.size = more.size.value_or(*size);
  else if (type == directory_type)
    e.kind = tar_entry::kind_t::directory;
  else if (type == link_type)
    e.kind = tar_entry::kind_t::symlink;
  else
    return damaged(std::string("an entry is not a file, directory or link: type '") + type + "'");
  if (e.kind == tar_entry::kind_t::symlink)
    e.target = more.target.value_or(text_in(block, link_field));
  if (const auto trouble = path_trouble(e.path); !trouble.empty())
    return damaged("a path " + trouble);
  return e;
}

} // namespace

std::string path_trouble(std::string_view path) {
  if (path.empty())
    return "is empty";
  if (path.size() > longest_path)
    return "is longer than " + std::to_string(longest_path) + " bytes";
  if (path.find('\0') != std::string_view::npos)
    return "has a zero byte";
  for (const auto component : split(path, '/'))
    if (component.empty() || component == "." || component == "..")
      return "leads out of its directory: " + sanitize_utf8(path);
  return {};
}

std::string tar_header(const tar_entry& entry) {
  const auto type = entry.kind == tar_entry::kind_t::file        ? file_type
                    : entry.kind == tar_entry::kind_t::directory ? directory_type
                                                                 : link_type;
  const auto more = extension_of(entry);
  std::string blocks;
  if (!more.empty()) {
    tar_entry of_extension;
    of_extension.path = "pax";
    blocks =
        header_block(of_extension, extension_type, more.size()) + more + tar_padding(more.size());
  }
  return blocks + header_block(entry, type, entry.size);
}

std::string tar_padding(std::uint64_t size) {
  const auto over = static_cast<std::size_t>(size % tar_block);
  return std::string(over == 0 ? 0 : tar_block - over, '\0');
}

std::string tar_end() {
  return std::string(2 * tar_block, '\0');
}

result<std::optional<tar_entry>>
next_tar_entry(const std::function<result<std::string>(std::size_t)>& read) {
  extension more;
  for (;;) {
    const auto block = read(tar_block);
    if (!block)
      return fail(block.error());
    if (std::ranges::all_of(*block, [](char c) { return c == '\0'; }))
      return std::optional<tar_entry>{};
    if (octal_in(*block, sum_field) != sum_of(*block))
      return damaged("a header's checksum is wrong");
    if ((*block)[type_field.at] != extension_type) {
      auto e = entry_of(*block, more);
      return e ? result<std::optional<tar_entry>>(std::move(*e)) : fail(std::move(e.error()));
    }
    const auto size = octal_in(*block, size_field);
    if (!size || *size > longest_extension)
      return damaged("an extension is too long");
    const auto text = read(static_cast<std::size_t>(*size) + tar_padding(*size).size());
    if (!text)
      return fail(text.error());
    if (auto taken = read_extension(
            more, std::string_view(*text).substr(0, static_cast<std::size_t>(*size)));
        !taken)
      return fail(std::move(taken.error()));
  }
}

} // namespace boyd::files
