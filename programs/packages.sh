# Fetches Debian's arm64 packages and unpacks them into a tree: from the sources that this machine's apt is configured for, without
# root and without changing its lists. For scripts to read with `.`.

# usage: unpack_packages FOLDER ROOT PACKAGE...
# With what the packages depend on. FOLDER keeps apt's lists and log. A complete ROOT is left as it is. If the packages cannot be had,
# prints why and fails.
unpack_packages() {
    local folder=$1 root=$2
    shift 2
    if [ -e "$root/.complete" ]; then return; fi
    read_lists "$folder" || return 1
    APT_CONFIG=$folder/apt/apt.conf apt-get -qq -y --download-only --no-install-recommends install "$@" >>"$folder/apt.log" 2>&1 ||
        { echo "the packages cannot be downloaded, see $folder/apt.log"; return 1; }
    unpack_archives "$folder" "$root"
}

# usage: unpack_alone FOLDER ROOT PACKAGE...
# The same without what the packages depend on.
unpack_alone() {
    local folder=$1 root=$2
    shift 2
    if [ -e "$root/.complete" ]; then return; fi
    read_lists "$folder" || return 1
    (cd "$folder/apt/cache/archives" && APT_CONFIG=$folder/apt/apt.conf apt-get -qq download "$@" >>"$folder/apt.log" 2>&1) ||
        { echo "the packages cannot be downloaded, see $folder/apt.log"; return 1; }
    unpack_archives "$folder" "$root"
}

# usage: read_lists FOLDER
read_lists() {
    local folder=$1 apt=$1/apt
    command -v apt-get >/dev/null || { echo "apt-get is missing: the packages come from a Debian machine's sources"; return 1; }
    mkdir -p "$apt"/{state/lists/partial,cache/archives/partial}
    : >"$apt/state/status"
    cat >"$apt/apt.conf" <<CONF
Dir::State "$apt/state";
Dir::State::status "$apt/state/status";
Dir::Cache "$apt/cache";
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
CONF
    rm -f "$apt"/cache/archives/*.deb
    APT_CONFIG=$apt/apt.conf apt-get update -qq >"$folder/apt.log" 2>&1 ||
        { echo "apt-get update failed, see $folder/apt.log"; return 1; }
}

# usage: unpack_archives FOLDER ROOT
unpack_archives() {
    local folder=$1 root=$2 package
    rm -rf "$root"
    # As on an installed system /bin, /sbin and /lib are links; packages may have files under either name.
    mkdir -p "$root"/usr/{bin,sbin,lib}
    ln -s usr/bin usr/sbin usr/lib "$root"
    for package in "$folder"/apt/cache/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$root" -f -
    done
    touch "$root/.complete"
}
