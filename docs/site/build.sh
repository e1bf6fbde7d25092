#!/bin/bash
# usage: docs/site/build.sh [FOLDER]
#
# Builds the documentation site in FOLDER (target/site): the pages that docs/site/SUMMARY.md lists, with pages made by fxscope: options of
# every command, keys, events, and a gallery of its pages. Links to files that are not in the site lead to the repository.
#
# FXSCOPE    the fxscope to use (target/release/fxscope)
# MDBOOK     the mdbook to use (target/tools/bin/mdbook)
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
site=${1:-$root/target/site}
fxscope=$(realpath -m "${FXSCOPE:-$root/target/release/fxscope}")
mdbook=$(realpath -m "${MDBOOK:-$root/target/tools/bin/mdbook}")
repository=$(sed -n 's/^repository = "\(.*\)"/\1/p' "$root/Cargo.toml")
pages=$root/target/site-pages

# Copies the listed pages, and pictures and other files beside them.
copy() {
    rm -rf "$pages"
    mkdir -p "$pages"/{reference,gallery}
    cp "$root"/docs/site/{SUMMARY.md,index.md,book.toml,site.css} "$pages"
    local page
    for page in $(sed -n 's/.*](\(.*\.md\)).*/\1/p' "$root/docs/site/SUMMARY.md"); do
        case $page in index.md | reference/* | gallery/*) continue ;; esac
        mkdir -p "$pages/$(dirname "$page")"
        cp "$root/$page" "$pages/$page"
    done
    cp "$root"/docs/notes/*.md "$pages/docs/notes"
    cp "$root"/docs/*.png "$pages/docs"
}

# Has links to files that are not in the site lead to the repository.
relink() {
    local page link target
    find "$pages" -name '*.md' | while read -r page; do
        { grep -o '](\([^)#: ]*\)' "$page" || true; } | sed 's/^](//' | sort -u | while read -r link; do
            case $link in "" | http | https | mailto) continue ;; esac
            target=$(realpath -m --relative-to "$pages" "$(dirname "$page")/$link")
            if [ -e "$pages/$target" ]; then continue; fi
            if [ ! -e "$root/$target" ]; then echo "site: ${page#"$pages"/} links to $link, which does not exist" >&2; exit 1; fi
            sed -i "s|](${link//./\\.}|]($repository/blob/main/$target|g" "$page"
        done
    done
}

# usage: printed TITLE LANGUAGE COMMAND...    a page with what a command of fxscope prints
printed() {
    printf '# %s\n\n`fxscope %s` prints\n\n```%s\n' "$1" "${*:3}" "$2"
    "$fxscope" "${@:3}"
    echo '```'
}

reference() {
    "$fxscope" reference >"$pages/reference/commands.md"
    printed "Keys of a machine" toml machine show a64fx >"$pages/reference/keys.md"
    printed "Events" text events a64fx >"$pages/reference/events.md"
}

# Pages that fxscope writes, as they are.
gallery() {
    local kernels=$root/kernels/prebuilt
    cd "$pages/gallery"
    "$fxscope" run -q --cpus 12-15 --data -o sharing.fxr -- "$kernels/ill.elf" illness=false-sharing
    "$fxscope" run -q --cpus 12-15 --data -o cured.fxr -- "$kernels/ill.elf" illness=false-sharing ill=0
    "$fxscope" report --by thread --format html -o report.html sharing.fxr
    "$fxscope" report --by thread --format sheet -o sheet.html sharing.fxr
    "$fxscope" compare --format html -o compare.html sharing.fxr cured.fxr
    "$fxscope" annotate --format html -o annotate.html sharing.fxr
    "$fxscope" guide sfi.mask --no-cache --format html -o guide.html
    "$fxscope" jitter linpack --nodes 3008 --format html -o jitter.html
    rm ./*.fxr
    cat >index.md <<'PAGE'
# Pages and plots

Pages that fxscope writes. Each is one file that needs no network.

| Page | Made by |
|---|---|
| [Report of a run](report.html): verdict, charts, roofline, loops, tables | `fxscope report --format html` |
| [The same on one sheet](sheet.html), in the order of Fujitsu's report | `fxscope report --format sheet` |
| [Two runs compared](compare.html) | `fxscope compare --format html` |
| [Annotated code](annotate.html) | `fxscope annotate --format html` |
| [An experiment of the guide](guide.html) | `fxscope guide NAME --format html` |
| [LINPACK under noise](jitter.html) | `fxscope jitter linpack --format html` |
PAGE
    cd "$root"
}

[ -x "$fxscope" ] || { echo "site: $fxscope is missing: cargo build --release, or set FXSCOPE" >&2; exit 1; }
[ -x "$mdbook" ] || { echo "site: mdbook is missing: cargo install --locked mdbook --version 0.5.2 --root target/tools" >&2; exit 1; }
copy
reference
gallery
relink
"$mdbook" build --dest-dir "$site" "$pages"
echo "site: $site/index.html"
