//! Commands of the pages in `docs` run, at small sizes. `table.rs` says what they need and which cannot run. Those of blocks marked `console`
//! run in `documents.rs`, which also compares what they print.

mod table;

use std::path::{Path, PathBuf};

use fxscope_testkit::markdown::{self, Block};

use crate::common::compile;
use crate::documents::{COMMANDS, FOLLOWED, SHOWN, Sandbox, root};
use table::{EVERYWHERE, PAGES, PROGRAMS, Page};

/// Folders of `docs` whose pages are not for users of today, or are made by programs.
const OTHERS: [&str; 3] = ["docs/notes", "docs/site", "docs/instructions"];

/// Returns the pages: their names, without `docs/` and `.md`, and their blocks of commands that run here.
fn pages() -> Vec<(String, Vec<Block>)> {
    let files = ignore::WalkBuilder::new(root().join("docs")).build().map(|entry| entry.expect("readable").into_path());
    let wanted = |path: &PathBuf| {
        path.extension().is_some_and(|x| x == "md") && !OTHERS.iter().any(|of| path.starts_with(root().join(of)))
    };
    let mut pages: Vec<_> = files.filter(wanted).map(|path| (name(&path), blocks(&path))).collect();
    pages.sort_by(|a, b| a.0.cmp(&b.0));
    pages
}

fn name(path: &Path) -> String {
    let name = path.strip_prefix(root().join("docs")).expect("a page").with_extension("");
    name.to_str().expect("UTF-8").to_owned()
}

fn blocks(path: &Path) -> Vec<Block> {
    let text = std::fs::read_to_string(path).expect("a page");
    markdown::blocks(&text)
}

/// Returns the commands of a page that run here, as written. Data may begin with our name, too, but not with a command behind it.
fn commands(blocks: &[Block]) -> Vec<String> {
    let is_command = |text: &str| {
        let second = text.strip_prefix("fxscope ").and_then(|rest| rest.split(' ').next());
        second.is_none_or(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-'))
    };
    let here = blocks.iter().filter(|block| block.language != COMMANDS && block.language != SHOWN);
    here.flat_map(|block| block.commands("fxscope"))
        .map(|command| command.text)
        .filter(|text| is_command(text))
        .collect()
}

/// Returns what the table says of a page.
fn entry(name: &str) -> Page {
    PAGES.iter().find(|page| page.name == name).copied().unwrap_or(table::page("a page that is not in the table"))
}

impl Page {
    /// Returns why a command does not run.
    fn left_out(&self, command: &str) -> Option<&str> {
        self.left_out.iter().find(|(begins, _)| command.starts_with(begins)).map(|(_, why)| *why)
    }

    /// Returns a command, or a file, at the size of the test.
    fn small(&self, text: &str) -> String {
        let changes = self.smaller.iter().chain(&EVERYWHERE);
        changes.fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    }

    /// Runs the commands of the page in a folder of its own.
    fn run(&self, blocks: &[Block]) {
        let sandbox = Sandbox::new();
        let folder = sandbox.path();
        let program =
            compile(folder, PROGRAMS[0], &["-O1", "-g", "-static", &format!("-I{}", include())], table::SOURCE);
        for other in &PROGRAMS[1..] {
            std::fs::copy(&program, folder.join(other)).expect("copied");
        }
        for (file, begins) in self.files {
            let block = blocks.iter().find(|block| block.text.starts_with(begins));
            let block = block.unwrap_or_else(|| panic!("docs/{}.md: no block begins with {begins:?}", self.name));
            std::fs::write(folder.join(file), self.small(&block.text)).expect("written");
        }
        sandbox.shell(folder, self.before);
        for command in commands(blocks).iter().filter(|command| self.left_out(command).is_none()) {
            sandbox.shell(folder, &self.small(command));
        }
    }
}

fn include() -> String {
    root().join("include").to_str().expect("UTF-8").to_owned()
}

/// Runs the commands of pages, those of several at a time.
fn run(pages: &[(String, Vec<Block>)]) {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for first in 0..jobs {
            let mine = pages.iter().skip(first).step_by(jobs);
            scope.spawn(move || mine.for_each(|(name, blocks)| entry(name).run(blocks)));
        }
    });
}

#[test]
fn what_the_table_says_of_a_page_is_in_the_page() {
    let pages = pages();
    for Page { name, smaller, left_out, .. } in PAGES {
        let (_, blocks) =
            pages.iter().find(|page| page.0 == *name).unwrap_or_else(|| panic!("there is no docs/{name}.md"));
        let all = commands(blocks);
        for (begins, why) in *left_out {
            assert!(all.iter().any(|command| command.starts_with(begins)), "docs/{name}.md has no command {begins}");
            assert!(!why.is_empty(), "docs/{name}.md: why does {begins} not run?");
        }
        for (from, _) in *smaller {
            assert!(blocks.iter().any(|block| block.text.contains(from)), "docs/{name}.md has no {from}");
        }
    }
}

#[test]
fn blocks_of_commands_with_output_are_in_pages_that_are_followed() {
    for (name, blocks) in pages() {
        let has = blocks.iter().any(|block| block.language == COMMANDS);
        assert_eq!(has, FOLLOWED.contains(&name.as_str()), "docs/{name}.md");
    }
}

mod slow {
    use super::{commands, entry, pages, run};

    #[test]
    #[ignore = "experiments, and simulations one after the other: a minute"]
    fn commands_of_pages_that_take_longer_run() {
        run(&pages().into_iter().filter(|(name, _)| entry(name).slow).collect::<Vec<_>>());
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn commands_of_pages_run() {
        let pages: Vec<_> =
            pages().into_iter().filter(|(name, of)| !entry(name).slow && !commands(of).is_empty()).collect();
        assert!(pages.len() > 20, "pages have commands: {}", pages.len());
        run(&pages);
    }
}
