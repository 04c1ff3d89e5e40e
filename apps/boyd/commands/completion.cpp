#include "../cli/command_line.hpp"
#include "../exit_codes.hpp"
#include "../terminal.hpp"
#include "commands.hpp"

#include <algorithm>

/// Completion scripts, generated from the tree of verbs.
namespace boyd::app {

namespace {

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& w : words)
    text += (text.empty() ? "" : " ") + w;
  return text;
}

std::vector<std::string> names_of(const std::vector<cli_verb>& verbs) {
  std::vector<std::string> names;
  for (const auto& v : verbs)
    names.push_back(v.name);
  return names;
}

std::vector<std::string> option_names(const cli_verb& v, const cli_verb& root) {
  std::vector<std::string> names;
  for (const auto* from : {&v, &root})
    for (const auto& o : from->options)
      for (const auto& n : o.names)
        if (std::find(names.begin(), names.end(), n) == names.end())
          names.push_back(n);
  return names;
}

/// Every verb with its path ("dispatches show"), parents first.
void walk(const cli_verb& v, const std::string& path,
          const std::function<void(const std::string&, const cli_verb&)>& visit) {
  visit(path, v);
  for (const auto& child : v.verbs)
    walk(child, path.empty() ? child.name : path + " " + child.name, visit);
}

/// Options with a value.
std::vector<cli_option> valued_options(const cli_verb& root) {
  std::vector<cli_option> found;
  walk(root, "", [&](const std::string&, const cli_verb& v) {
    for (const auto& o : v.options) {
      const bool known = std::any_of(found.begin(), found.end(),
                                     [&](const cli_option& f) { return f.names == o.names; });
      if (o.takes_value && !known)
        found.push_back(o);
    }
  });
  return found;
}

std::string alternatives(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& n : names)
    text += (text.empty() ? "" : "|") + n;
  return text;
}

std::string bash_script(const cli_verb& root) {
  std::string values;
  for (const auto& o : valued_options(root)) {
    values += "    " + alternatives(o.names) + ") ";
    if (!o.choices.empty())
      values += "COMPREPLY=($(compgen -W '" + join(o.choices) + "' -- \"$cur\"))";
    else
      values += o.kind.empty() ? "COMPREPLY=()" : "_boyd_offer " + o.kind;
    values += "; return ;;\n";
  }
  std::string verbs;
  std::string known;
  walk(root, "", [&](const std::string& path, const cli_verb& v) {
    known += (known.empty() ? "" : "|") + ("\"" + path + "\"");
    verbs += "    \"" + path + "\") words='" + join(names_of(v.verbs)) +
             join(v.positional_choices) + "'; kind='" + v.positional_kind + "'; options='" +
             join(option_names(v, root)) + "' ;;\n";
  });
  return "# bash completion for boyd\n"
         "_boyd_offer() {\n"
         "  local i word home=()\n"
         "  if [[ $1 == files ]]; then\n"
         "    compopt -o filenames 2>/dev/null\n"
         "    local IFS=$'\\n'\n"
         "    COMPREPLY=($(compgen -f -- \"$cur\"))\n"
         "    return\n"
         "  fi\n"
         "  for ((i = 1; i + 1 < COMP_CWORD; i++)); do\n"
         "    case \"${COMP_WORDS[i]}\" in\n"
         "      --home|--config)\n"
         "        word=\"${COMP_WORDS[i+1]/#\\~/$HOME}\"\n"
         "        word=\"${word//\\\\/}\"\n"
         "        word=\"${word#[\\\"\\']}\"\n"
         "        home+=(\"${COMP_WORDS[i]}\" \"${word%[\\\"\\']}\") ;;\n"
         "    esac\n"
         "  done\n"
         "  COMPREPLY=($(compgen -W \"$(\"${COMP_WORDS[0]/#\\~/$HOME}\" \"${home[@]}\" complete "
         "\"$1\" 2>/dev/null)\" -- \"$cur\"))\n"
         "}\n"
         "_boyd() {\n"
         "  local cur prev path word i words options kind\n"
         "  cur=\"${COMP_WORDS[COMP_CWORD]}\"\n"
         "  prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
         "  case \"$prev\" in\n" +
         values +
         "  esac\n"
         "  path=''\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    word=\"${path:+$path }${COMP_WORDS[i]}\"\n"
         "    case \"$word\" in\n"
         "      " +
         known +
         ") path=\"$word\" ;;\n"
         "    esac\n"
         "  done\n"
         "  case \"$path\" in\n" +
         verbs +
         "  esac\n"
         "  if [[ \"$cur\" == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
         "  elif [[ -n \"$kind\" ]]; then\n"
         "    _boyd_offer \"$kind\"\n"
         "  else\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "  fi\n"
         "}\n"
         "complete -F _boyd boyd\n";
}

/// For text inside '…' in all three shells: an apostrophe becomes a typographic one.
std::string quoted(std::string text) {
  std::string out;
  for (const char c : text)
    if (c == '\'')
      out += "\xE2\x80\x99";
    else if (c != '\n')
      out += c;
  return "'" + out + "'";
}

/// In zsh's descriptions a colon and brackets mean something.
std::string zsh_text(std::string text) {
  std::string out;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']')
      out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_script(const cli_verb& root) {
  std::string values;
  for (const auto& o : valued_options(root)) {
    values += "    " + alternatives(o.names) + ") ";
    if (!o.choices.empty())
      values += "compadd -- " + join(o.choices);
    else
      values += o.kind.empty() ? "_message value" : "_boyd_offer " + o.kind;
    values += "; return ;;\n";
  }
  std::string known;
  std::string verbs;
  walk(root, "", [&](const std::string& path, const cli_verb& v) {
    known += (known.empty() ? "" : "|") + ("\"" + path + "\"");
    verbs += "    \"" + path + "\")\n      offers=(";
    for (const auto& child : v.verbs)
      verbs += quoted(child.name + ":" + zsh_text(child.help)) + " ";
    for (const auto& choice : v.positional_choices)
      verbs += quoted(choice) + " ";
    verbs += ")\n      kind='" + v.positional_kind + "'; options=(" + join(option_names(v, root)) +
             ") ;;\n";
  });
  return "#compdef boyd\n"
         "_boyd_offer() {\n"
         "  local i\n"
         "  local -a home\n"
         "  if [[ $1 == files ]]; then _files; return; fi\n"
         "  for ((i = 2; i + 1 < CURRENT; i++)); do\n"
         "    case \"${words[i]}\" in\n"
         "      --home|--config) home+=(\"${words[i]}\" "
         "\"${(Q)${words[i+1]/#\\~/$HOME}}\") ;;\n"
         "    esac\n"
         "  done\n"
         "  compadd -- ${(f)\"$(\"${words[1]/#\\~/$HOME}\" $home complete $1 2>/dev/null)\"}\n"
         "}\n"
         "_boyd() {\n"
         "  local cur prev verb word i kind\n"
         "  local -a offers options\n"
         "  cur=\"${words[CURRENT]}\"\n"
         "  prev=\"${words[CURRENT-1]}\"\n"
         "  case \"$prev\" in\n" +
         values +
         "  esac\n"
         "  verb=''\n"
         "  for ((i = 2; i < CURRENT; i++)); do\n"
         "    word=\"${verb:+$verb }${words[i]}\"\n"
         "    case \"$word\" in\n"
         "      " +
         known +
         ") verb=\"$word\" ;;\n"
         "    esac\n"
         "  done\n"
         "  case \"$verb\" in\n" +
         verbs +
         "  esac\n"
         "  if [[ \"$cur\" == -* ]]; then\n"
         "    compadd -- $options\n"
         "  elif [[ -n \"$kind\" ]]; then\n"
         "    _boyd_offer $kind\n"
         "  else\n"
         "    _describe boyd offers\n"
         "  fi\n"
         "}\n"
         "if [[ \"$funcstack[1]\" == _boyd ]]; then _boyd \"$@\"; else compdef _boyd boyd; fi\n";
}

std::string fish_offer(const std::string& kind) {
  return kind.empty() ? "" : kind == "files" ? " -F" : " -a '(__boyd_offer " + kind + ")'";
}

std::string fish_option(const cli_option& o) {
  std::string text;
  for (const auto& n : o.names)
    text += n.rfind("--", 0) == 0 ? " -l " + n.substr(2) : " -s " + n.substr(1);
  if (!o.choices.empty())
    text += " -x -a " + quoted(join(o.choices));
  else if (o.kind == "files")
    text += " -r -F";
  else if (o.takes_value)
    text += " -x" + fish_offer(o.kind);
  return text + " -d " + quoted(o.help);
}

/// What stands in the line before the word that is completed: the verb, and the home.
std::string fish_functions(const cli_verb& root) {
  std::string known;
  walk(root, "", [&](const std::string& path, const cli_verb&) {
    known += path.empty() ? "" : " '" + path + "'";
  });
  return "# fish completion for boyd\n"
         "function __boyd_verb\n"
         "  set -l verb\n"
         "  for word in (commandline -opc)[2..-1]\n"
         "    set -l next (string join ' ' -- $verb $word)\n"
         "    contains -- \"$next\"" +
         known +
         "; and set verb $next\n"
         "  end\n"
         "  echo $verb\n"
         "end\n"
         "function __boyd_offer\n"
         "  set -l words (string replace -r '^~' $HOME -- (commandline -opc))\n"
         "  set -l home\n"
         "  for name in --home --config\n"
         "    if set -l i (contains -i -- $name $words)\n"
         "      set -a home $name $words[(math $i + 1)]\n"
         "    end\n"
         "  end\n"
         "  $words[1] $home complete $argv[1] 2>/dev/null\n"
         "end\n"
         "complete -c boyd -f\n";
}

std::string fish_script(const cli_verb& root) {
  auto out = fish_functions(root);
  for (const auto& o : root.options)
    out += "complete -c boyd" + fish_option(o) + "\n";
  walk(root, "", [&](const std::string& path, const cli_verb& v) {
    const auto here = "complete -c boyd -n 'test \"$(__boyd_verb)\" = \"" + path + "\"'";
    for (const auto& o : v.options)
      if (!path.empty() && o.names.back() != "--help")
        out += here + fish_option(o) + "\n";
    for (const auto& choice : v.positional_choices)
      out += here + " -a " + choice + "\n";
    if (!v.positional_kind.empty())
      out += here + fish_offer(v.positional_kind) + "\n";
    for (const auto& child : v.verbs)
      out += here + " -a " + child.name + " -d " + quoted(child.help) + "\n";
  });
  return out;
}

} // namespace

int run_completion(const arguments& args) {
  const auto root = describe_command_line();
  print(args.shell == "bash"  ? bash_script(root)
        : args.shell == "zsh" ? zsh_script(root)
                              : fish_script(root));
  return exit_code::ok;
}

} // namespace boyd::app
