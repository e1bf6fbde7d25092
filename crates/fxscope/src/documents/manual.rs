//! Pages of the manual.

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::terminal::status;

/// Returns the page of the command that the words name; without words, of the whole command line.
///
/// # Errors
/// If there is no such command; the message names those that there are.
pub(crate) fn page_of(cli: Command, words: &[String]) -> Result<Vec<u8>, String> {
    let root = built(cli);
    Ok(page(&root, found(&root, words)?))
}

/// Returns all pages with the names of their files.
pub(crate) fn all_pages(cli: Command) -> Vec<(String, Vec<u8>)> {
    let root = built(cli);
    let mut pages = Vec::new();
    add_pages(&root, &root, &mut pages);
    pages
}

fn built(cli: Command) -> Command {
    let mut root = cli.disable_help_subcommand(true);
    root.build();
    root
}

/// Returns the command that the words name.
fn found<'a>(root: &'a Command, words: &[String]) -> Result<&'a Command, String> {
    let mut command = root;
    for word in words {
        command = command.find_subcommand(word).ok_or_else(|| {
            let known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            let name = title(command).replace('-', " ");
            match known.is_empty() {
                true => format!("{name} has no command '{word}' below it"),
                false => format!("{name} has no command '{word}'; it has {}", known.join(", ")),
            }
        })?;
    }
    Ok(command)
}

/// Adds the pages of a command and of all below it.
fn add_pages(root: &Command, command: &Command, pages: &mut Vec<(String, Vec<u8>)>) {
    pages.push((format!("{}.1", title(command)), page(root, command)));
    command.get_subcommands().for_each(|below| add_pages(root, below, pages));
}

/// Returns the name of a command's page, such as `fxscope-run`.
fn title(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// Returns a page.
fn page(root: &Command, command: &Command) -> Vec<u8> {
    let man = Man::new(command.clone()).title(title(command).to_uppercase()).manual("fxscope manual");
    let version = concat!("fxscope ", env!("CARGO_PKG_VERSION"));
    let man = man.source(version);
    let mut page = Vec::new();
    let written = man
        .render_title(&mut page)
        .and_then(|()| man.render_name_section(&mut page))
        .and_then(|()| man.render_synopsis_section(&mut page))
        .and_then(|()| man.render_description_section(&mut page))
        .and_then(|()| man.render_options_section(&mut page));
    let written = match command.has_subcommands() {
        true => written.and_then(|()| man.render_subcommands_section(&mut page)),
        false => written,
    };
    written.and_then(|()| closing(root, command).to_writer(&mut page)).expect("memory can be written");
    page
}

/// Returns the last section: exit statuses on the page of the whole command line, where they are on others.
fn closing(root: &Command, command: &Command) -> Roff {
    let mut roff = Roff::new();
    if title(command) == root.get_name() {
        exit_statuses(&mut roff);
    } else {
        roff.control("SH", ["SEE ALSO"]);
        roff.text([bold("fxscope"), roman("(1), which lists the exit statuses")]);
    }
    roff
}

/// Adds the section with each exit status and its meaning.
fn exit_statuses(roff: &mut Roff) {
    roff.control("SH", ["EXIT STATUS"]);
    roff.text([roman("run, resume and advise pass on the exit status of the simulated program.")]);
    for (status, meaning) in status::meanings() {
        roff.control("TP", ["8"]);
        roff.text([bold(status)]);
        roff.text([roman(meaning)]);
    }
}
