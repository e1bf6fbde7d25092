//! The documentation site: `docs/site/SUMMARY.md` lists its pages, `docs/site/build.sh` builds it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fxscope_testkit::markdown;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates are two folders down").to_path_buf()
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap_or_else(|e| panic!("{page}: {e}"))
}

/// Folders of pages that `docs/site/build.sh` makes.
const MADE: [&str; 2] = ["reference/", "gallery/"];

/// Returns the pages that the site lists, without those that its script makes.
fn listed() -> Vec<String> {
    let links = markdown::links(&read("docs/site/SUMMARY.md")).into_iter().map(|link| link.to);
    let page = |to: String| if to == "index.md" { "docs/site/index.md".to_owned() } else { to };
    links.filter(|to| !MADE.iter().any(|folder| to.starts_with(folder))).map(page).collect()
}

/// Returns the documents below a folder, without those of other folders in it.
fn documents(folder: &str, without: &[&str]) -> BTreeSet<String> {
    let files = ignore::WalkBuilder::new(root().join(folder)).build().map(|entry| entry.expect("readable").into_path());
    let names =
        files.map(|path| path.strip_prefix(root()).expect("below the root").to_str().expect("UTF-8").to_owned());
    names.filter(|name| name.ends_with(".md") && !without.iter().any(|folder| name.starts_with(folder))).collect()
}

#[test]
fn the_site_lists_every_document_and_example_once_and_the_list_of_notes() {
    let listed = listed();
    let set: BTreeSet<String> = listed.iter().cloned().collect();
    assert_eq!(listed.len(), set.len(), "docs/site/SUMMARY.md lists a page twice");
    let wanted = &documents("docs", &["docs/notes/", "docs/site/"]) | &documents("examples", &[]);
    let missing: Vec<_> = wanted.difference(&set).collect();
    assert!(missing.is_empty(), "docs/site/SUMMARY.md does not list {missing:?}");
    assert!(set.contains("docs/notes/README.md"), "build.sh puts the notes below their list");
}

#[test]
fn every_document_is_linked_from_another() {
    let all = documents(".", &["docs/site/SUMMARY.md"]);
    let linked: BTreeSet<PathBuf> = all
        .iter()
        .flat_map(|from| {
            let links = markdown::links(&read(from)).into_iter();
            let to =
                |to: &str| root().join(from).parent().map(|folder| folder.join(to.split('#').next().unwrap_or("")));
            links
                .filter_map(|link| to(&link.to)?.canonicalize().ok())
                .filter(|to| *to != root().join(from))
                .collect::<Vec<_>>()
        })
        .collect();
    let exists = |page: &String| linked.contains(&root().join(page).canonicalize().expect("listed pages exist"));
    let alone: Vec<String> =
        listed().into_iter().filter(|page| page != "docs/site/index.md" && !exists(page)).collect();
    assert!(alone.is_empty(), "nothing links to {alone:?}");
}

#[test]
fn every_page_begins_with_a_sentence() {
    let notes = documents("docs/notes", &[]);
    for page in listed().into_iter().chain(notes) {
        let text = read(&page);
        let mut lines = text.lines().filter(|line| !line.is_empty());
        let title = lines.next().unwrap_or_default();
        assert!(title.starts_with("# "), "{page} has no title");
        let first = lines.next().unwrap_or_default();
        let other = ["    ", "```", "|", "#", "* ", "- ", "1."];
        assert!(
            !other.iter().any(|begins| first.starts_with(begins)),
            "{page} begins with {first:?}: say what it is for"
        );
    }
}

#[test]
fn the_front_page_leads_to_accuracy_speed_limits_and_citation() {
    let front = markdown::links(&read("docs/site/index.md"));
    for page in ["docs/validation.md", "docs/speed.md", "docs/model/limits.md", "docs/cite.md"] {
        assert!(front.iter().any(|link| link.to == page), "docs/site/index.md does not lead to {page}");
    }
}
