//! What a stream can display: colours, characters, width.

use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::sync::OnceLock;

use fxscope::report::render::terminal::{self, Style};
use terminal_size::terminal_size_of;

/// When output has colours.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Colour {
    Auto,
    Always,
    Never,
}

/// What the option says, for all that is printed.
static COLOUR: OnceLock<Colour> = OnceLock::new();

/// Says once for the whole process when output has colours.
pub(crate) fn set_colour(colour: Colour) {
    let _ = COLOUR.set(colour);
}

/// Returns what a stream can display.
pub(crate) fn style(stream: &(impl IsTerminal + AsFd)) -> Style {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable).unwrap_or_default().to_uppercase();
    let dumb = variable("TERM").is_none_or(|term| term == "dumb");
    let colour = match COLOUR.get() {
        Some(Colour::Always) => true,
        Some(Colour::Never) => false,
        Some(Colour::Auto) | None => stream.is_terminal() && !dumb && variable("NO_COLOR").is_none(),
    };
    let known = width(stream);
    Style {
        unicode: locale.contains("UTF-8") || locale.contains("UTF8"),
        colour,
        width: known.map_or(terminal::USUAL, |width| width.clamp(terminal::NARROWEST, terminal::WIDEST)),
        cuts: known.is_some(),
    }
}

/// Returns the width that a stream has: `COLUMNS`, or that of a terminal; `None` for files and pipes.
fn width(stream: &impl AsFd) -> Option<usize> {
    let given = variable("COLUMNS").and_then(|columns| columns.parse().ok());
    given.or_else(|| terminal_size_of(stream).map(|(width, _)| usize::from(width.0)))
}

/// Returns an environment variable that is not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
