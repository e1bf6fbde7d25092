//! `fxscope man`: pages of the manual, from the definition of the command line.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::output::{Target, failure};
use super::{Cli, Failure, Outcome, print, status};

/// Print a page of the manual, for man -l.
///
/// fxscope man run | man -l - shows the page of a command. Packages install all pages: man fxscope, man fxscope-run.
#[derive(clap::Args)]
pub struct Args {
    /// A command, such as run or jitter measure; without one, the page of fxscope.
    #[arg(conflicts_with = "folder")]
    command: Vec<String>,
    /// Write all pages to this folder, which is created if it is missing.
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Prints the page, or writes all pages.
pub(super) fn man(args: &Args) -> Outcome {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    match &args.folder {
        Some(folder) => write_all(&root, folder)?,
        None => print(String::from_utf8_lossy(&page(found(&root, &args.command)?)))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the command that the words name.
fn found<'a>(root: &'a Command, words: &[String]) -> Result<&'a Command, Failure> {
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

/// Writes the pages of a command and of all below it.
fn write_all(command: &Command, folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|e| failure(folder, &e))?;
    Target::check(&folder.join(format!("{}.1", title(command))))?.write_bytes(&page(command))?;
    command.get_subcommands().try_for_each(|below| write_all(below, folder))
}

/// Returns the name of a command's page, such as `fxscope-run`.
fn title(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// Returns a page.
fn page(command: &Command) -> Vec<u8> {
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
    written.and_then(|()| closing(command).to_writer(&mut page)).expect("memory can be written");
    page
}

/// Returns the last section: exit statuses on the page of fxscope, where they are on others.
fn closing(command: &Command) -> Roff {
    let mut roff = Roff::new();
    if title(command) == Cli::command().get_name() {
        status::manual(&mut roff);
    } else {
        roff.control("SH", ["SEE ALSO"]);
        roff.text([bold("fxscope"), roman("(1), which lists the exit statuses")]);
    }
    roff
}
