# shellcheck shell=bash
# Shared by the scripts beside it: source it, do not run it. It sets the strict mode, goes to the
# top of the source tree and never reads from stdin.
set -euo pipefail
exec </dev/null

# The running script; its callers read these two.
# shellcheck disable=SC2034
self=$(readlink -f "$0")
BOYD_SOURCE_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
export BOYD_SOURCE_DIR
cd "$BOYD_SOURCE_DIR"

# One language for every tool's messages: some of them are parsed.
export LC_ALL=C.UTF-8

# Objects are shared between presets and runs. The sloppiness is what lets ccache work with
# precompiled headers, whose time stamps change with every checkout.
export CCACHE_DIR=${CCACHE_DIR:-$BOYD_SOURCE_DIR/build/.ccache}
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros,include_file_mtime,include_file_ctime}
# Paths count from the build directory: the presets share what they compile alike.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$BOYD_SOURCE_DIR}
export CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-4G}

# How many things to do at once: BOYD_JOBS, else one per core.
# shellcheck disable=SC2034
jobs=${BOYD_JOBS:-$(nproc)}

say() { printf '\n== %s\n' "$*"; }
note() { printf '   %s\n' "$*"; }
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# The comment at the head of the running script is its help.
usage() { sed -n '2,${/^#/!q;/shellcheck/d;s/^# \{0,1\}//p}' "$self"; }

# git on this tree, also when somebody else owns the checkout (containers, sudo).
repo_git() { git -c safe.directory='*' -C "$BOYD_SOURCE_DIR" "$@"; }

# tracked PATTERN...: the tree's own files that match, NUL-separated; untracked ones that are not
# ignored count, so that a check sees a new file before it is committed.
tracked() {
  if repo_git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    repo_git ls-files -z --cached --others --exclude-standard --deduplicate -- "$@" |
      while IFS= read -r -d '' file; do
        if [[ -f $file ]]; then printf '%s\0' "$file"; fi
      done
  else
    local args=() pattern
    for pattern in "$@"; do args+=(-o -path "./$pattern"); done
    find . -path ./build -prune -o -type f \( "${args[@]:1}" \) -printf '%P\0'
  fi
}

# install_for PRESET: what its build and its tests need.
install_for() {
  local groups=(--build --test)
  [[ $1 != asan && $1 != fuzz ]] || groups+=(--sanitize)
  scripts/install-deps "${groups[@]}"
}

# configure PRESET [CMAKE ARGUMENT...]
configure() {
  local preset=$1
  shift
  mkdir -p build "$CCACHE_DIR" # which may be somewhere else
  local log=build/configure-$preset.log tries=0
  while cmake --preset "$preset" "$@" >"$log" 2>&1; do
    # A directory of another compiler forgets the preset's other settings at the first try.
    if ((++tries > 1)) || ! grep -q 'variables that require your cache to be deleted' "$log"; then
      return 0
    fi
  done
  cat "$log" >&2
  die "configuring preset $preset failed (the log is above; scripts/install-deps installs what is missing)"
}

# build PRESET [TARGET...]
build() {
  local preset=$1
  shift
  cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"}
}

# install_from_npm DIRECTORY PACKAGE@VERSION...: brings them there, unless they are there already, and
# prints the directory.
install_from_npm() {
  local where=$1 stamp=$1/installed
  shift
  if [[ ! -f $stamp || $(<"$stamp") != "$*" ]]; then
    command -v npm >/dev/null || die "npm is not installed"
    mkdir -p "$where"
    timeout --kill-after=10 240 npm install --no-audit --no-fund --ignore-scripts --fetch-retries=1 \
      --fetch-timeout=20000 --prefix "$where" "$@" >&2 || die "npm did not install $*"
    printf '%s\n' "$*" >"$stamp"
  fi
  printf '%s\n' "$where"
}
