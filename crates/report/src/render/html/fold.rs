//! Parts of a page that can be folded, each with a line that says its answer.

use maud::{Markup, html};

/// Whether a part is open at first, and in print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Open.
    Open,
    /// Closed on screens, open in print.
    Closed,
    /// Closed, in print as well.
    ScreenOnly,
}

/// Returns `body` under a title and its answer, which may be empty.
pub fn draw(title: &str, answer: &str, state: State, body: &Markup) -> Markup {
    html! {
        details.fold open[state == State::Open] data-screen[state == State::ScreenOnly] {
            summary { span.title { (title) } @if !answer.is_empty() { " " span.soft { (answer) } } }
            (body)
        }
    }
}

/// Returns the buttons that open and close all parts.
pub fn buttons() -> Markup {
    html! {
        p.tools {
            button type="button" data-fold="open" { "Open all" } " "
            button type="button" data-fold="close" { "Close all" }
        }
    }
}
