#include "library_internal.hpp"

#include <dlfcn.h>
#include <mutex>

namespace boyd::adapters::curl_detail {

namespace {

constexpr auto file = "libcurl.so.4";
/// 7.87: CURLOPT_QUICK_EXIT, without which the end of a request waits for its name look-up.
constexpr unsigned least_version = 0x075700;

class loader {
 public:
  explicit loader(void* handle) : handle_(handle) {}

  template <class Function>
  void find(Function& f, const char* name) {
    f = reinterpret_cast<Function>(::dlsym(handle_, name));
    all_ = all_ && f != nullptr;
  }
  bool found_all() const { return all_; }

 private:
  void* handle_;
  bool all_ = true;
};

bool find_all(library& l, void* handle) {
  loader load(handle);
  load.find(l.global_init, "curl_global_init");
  load.find(l.version_info, "curl_version_info");
  load.find(l.easy_init, "curl_easy_init");
  load.find(l.easy_cleanup, "curl_easy_cleanup");
  load.find(l.easy_setopt, "curl_easy_setopt");
  load.find(l.easy_getinfo, "curl_easy_getinfo");
  load.find(l.easy_strerror, "curl_easy_strerror");
  load.find(l.slist_append, "curl_slist_append");
  load.find(l.slist_free_all, "curl_slist_free_all");
  load.find(l.multi_init, "curl_multi_init");
  load.find(l.multi_cleanup, "curl_multi_cleanup");
  load.find(l.multi_setopt, "curl_multi_setopt");
  load.find(l.multi_add_handle, "curl_multi_add_handle");
  load.find(l.multi_remove_handle, "curl_multi_remove_handle");
  load.find(l.multi_socket_action, "curl_multi_socket_action");
  load.find(l.multi_info_read, "curl_multi_info_read");
  return load.found_all();
}

tl::unexpected<error> no_library(const char* why) {
  return fail(errc::io_error, why, file, "install libcurl4 (7.87 or newer)");
}

} // namespace

result<const library*> load_library() {
  static std::mutex mutex;
  static library loaded;
  static bool ready = false;
  const std::lock_guard lock(mutex);
  if (ready)
    return &loaded;
  void* handle = ::dlopen(file, RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr)
    return no_library("cannot load the HTTP library");
  if (!find_all(loaded, handle) ||
      loaded.version_info(CURLVERSION_NOW)->version_num < least_version)
    return no_library("the HTTP library is too old");
  if (loaded.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    return no_library("cannot start the HTTP library");
  ready = true;
  return &loaded;
}

} // namespace boyd::adapters::curl_detail
