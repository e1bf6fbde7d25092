//! `fxscope completions`: completion of commands and options in shells, from the definition of the command line.

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Cli;
use crate::documents;
use crate::terminal::{Outcome, print};

/// Print the completion script of a shell.
///
/// In bash: fxscope completions bash > ~/.local/share/bash-completion/completions/fxscope. In zsh: fxscope completions zsh >
/// _fxscope, in a folder of fpath. In fish: fxscope completions fish > ~/.config/fish/completions/fxscope.fish. Packages
/// install all three.
#[derive(clap::Args)]
pub struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: Known,
}

/// Shells for which packages have completions.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Known {
    Bash,
    Zsh,
    Fish,
}

/// Prints the script.
pub(super) fn completions(args: &Args) -> Outcome {
    let shell = match args.shell {
        Known::Bash => Shell::Bash,
        Known::Zsh => Shell::Zsh,
        Known::Fish => Shell::Fish,
    };
    print(documents::completions(Cli::command(), shell))
}
