//! Completion of commands and options in shells.

use clap::Command;
use clap_complete::{Shell, generate};

/// Returns the completion script of a shell.
pub(crate) fn completions(mut cli: Command, shell: Shell) -> String {
    let mut script = Vec::new();
    let name = cli.get_name().to_owned();
    generate(shell, &mut cli, name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}
