#!/bin/bash
# usage: docs/site/build.sh [FOLDER]
#
# Builds the documentation site in FOLDER (target/site): the pages that docs/site/SUMMARY.md lists, with pages made by fxscope: options of
# every command, keys, events, metrics, forms of JSON, and a gallery of its pages. Links to files that are not in the site lead to the repository.
#
# FXSCOPE            the fxscope to use (target/release/fxscope)
# FXSCOPE_BROWSER    the Chromium that takes the pictures of the gallery (chromium-headless-shell, where it is installed)
# MDBOOK             the mdbook to use (target/tools/bin/mdbook)
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
site=${1:-$root/target/site}
fxscope=$(realpath -m "${FXSCOPE:-$root/target/release/fxscope}")
mdbook=$(realpath -m "${MDBOOK:-$root/target/tools/bin/mdbook}")
repository=$(sed -n 's/^repository = "\(.*\)"/\1/p' "$root/Cargo.toml")
pages=$root/target/site-pages

# Lists the notes of experiments, which docs/notes/README.md lists, below that page.
notes() {
    sed -n 's|^. \[.*\](\(.*\.md\)) . \(.*\) .$|  - [\2](docs/notes/\1)|p' "$root/docs/notes/README.md"
}

# Copies the listed pages, and pictures and other files beside them.
copy() {
    rm -rf "$pages"
    mkdir -p "$pages"/{reference,gallery}
    cp "$root"/docs/site/{index.md,book.toml,site.css} "$pages"
    sed '\|(docs/notes/README.md)|r /dev/stdin' "$root/docs/site/SUMMARY.md" < <(notes) >"$pages/SUMMARY.md"
    local page
    for page in $(sed -n 's/.*](\(.*\.md\)).*/\1/p' "$pages/SUMMARY.md"); do
        case $page in index.md | reference/* | gallery/*) continue ;; esac
        mkdir -p "$pages/$(dirname "$page")"
        cp "$root/$page" "$pages/$page"
    done
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
    local part
    for part in commands metrics schemas; do "$fxscope" reference "$part" >"$pages/reference/$part.md"; done
    printed "Keys of a machine" toml machine show a64fx >"$pages/reference/keys.md"
    printed "Events" text events a64fx >"$pages/reference/events.md"
}

# usage: shown NAME TITLE, with commands on standard input
#
# Runs the commands, of which the last writes NAME.html; adds the page, its picture and the commands to the gallery.
shown() {
    local commands
    commands=$(cat)
    PATH=$tools:$PATH bash -euc "$commands"
    printf '\n## %s\n\n```console\n%s\n```\n\n' "$2" "$(sed 's/^/$ /' <<<"$commands")" >>index.md
    if [ -n "$browser" ]; then
        "$browser" --no-sandbox --hide-scrollbars --window-size=1000,700 --screenshot="$1.png" "file://$PWD/$1.html" 2>/dev/null
        printf '[![%s](%s.png)](%s.html)\n' "$2" "$1" "$1" >>index.md
    else
        printf '[The page](%s.html)\n' "$1" >>index.md
    fi
}

# Pages that fxscope writes, as they are, each with the commands that make it.
gallery() {
    local tools browser
    browser=$(command -v "${FXSCOPE_BROWSER:-chromium-headless-shell}" || true)
    [ -n "$browser" ] || echo "site: the gallery has no pictures: chromium-headless-shell is missing; install it, or set FXSCOPE_BROWSER" >&2
    cd "$pages/gallery"
    tools=$PWD/.tools
    mkdir "$tools"
    ln -s "$fxscope" "$tools/fxscope"
    ln -s "$root/kernels" kernels
    printf '# Pages and plots\n\nPages that fxscope writes, and the commands that make them. Each is one file that needs no network.\n' >index.md
    shown report "Report of a run: verdict, charts, roofline, loops, tables" <<'END'
fxscope run -q --cpus 12-15 --data -o sharing.fxr -- kernels/prebuilt/ill.elf illness=false-sharing
fxscope report --by thread --format html -o report.html sharing.fxr
END
    shown sheet "The same on one sheet, in the order of Fujitsu's report" <<'END'
fxscope report --by thread --format sheet -o sheet.html sharing.fxr
END
    shown compare "Two runs compared" <<'END'
fxscope run -q --cpus 12-15 --data -o cured.fxr -- kernels/prebuilt/ill.elf illness=false-sharing ill=0
fxscope compare --format html -o compare.html sharing.fxr cured.fxr
END
    shown annotate "Annotated code" <<'END'
fxscope annotate --format html -o annotate.html sharing.fxr
END
    shown advise "Advice: remedies, simulated" <<'END'
fxscope advise -q --cpus 12,24 --format html -o advise.html -- kernels/prebuilt/ill.elf illness=remote
END
    shown guide "An experiment of the guide" <<'END'
fxscope guide sfi.mask --format html -o guide.html
END
    shown latency "Slower memory, predicted" <<'END'
fxscope run -q -o chase.fxr -- kernels/prebuilt/chase.elf 10485760 500 warm
fxscope latency predict chase.fxr --format html -o latency.html
END
    shown pages "What pages cost" <<'END'
fxscope pages experiment cost --format html -o pages.html
END
    shown jitter "LINPACK under noise" <<'END'
fxscope jitter linpack --nodes 3008 --format html -o jitter.html
END
    rm -r ./*.fxr kernels "$tools"
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
