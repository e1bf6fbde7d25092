//! The verdict: what limits a program, where, and what to try.

use super::{BOLD, Terminal, head, width};
use crate::render::quantity::share;
use crate::verdict::{Hot, Limit, Remedy, Verdict, in_short};

/// Limits that are shown.
const LIMITS: usize = 4;
/// Start column of what belongs to a heading, and of what follows a share there.
const INDENT: usize = 4;
const TEXT: usize = 12;
/// Widest name of a function.
const FUNCTION: usize = 30;

impl Terminal {
    pub(super) fn verdict(&mut self, verdict: &Verdict) {
        self.wrapped(&verdict.result, 2, 2);
        if !verdict.limits.is_empty() {
            self.heading("What limits it, share of core time");
        }
        verdict.limits.iter().take(LIMITS).for_each(|limit| self.limit(limit));
        if !verdict.hottest.is_empty() {
            self.heading("Hottest functions, share of thread time");
        }
        verdict.hottest.iter().for_each(|hot| self.hot(hot));
        if !verdict.loops.is_empty() {
            self.heading("Hottest loops, share of thread time");
        }
        verdict.loops.iter().for_each(|hot| self.hot(hot));
        if !verdict.remedies.is_empty() {
            self.heading("What to try");
        }
        for (number, remedy) in (1..).zip(&verdict.remedies) {
            self.remedy(number, remedy);
        }
        for note in &verdict.notes {
            self.wrapped(note, 2, 2);
        }
    }

    fn heading(&mut self, title: &str) {
        let title = self.paint(BOLD, title);
        self.line(&format!("  {title}"));
    }

    fn limit(&mut self, limit: &Limit) {
        let title = self.paint(BOLD, &limit.title);
        self.line(&format!("{:INDENT$}{:>7} {title}", "", share(limit.share)));
        self.wrapped(&self.displayable(&limit.says), TEXT, TEXT);
        let facts: Vec<String> = limit.evidence.iter().map(ToString::to_string).collect();
        self.wrapped(&format!("({})", facts.join("; ")), TEXT, TEXT + 1);
    }

    fn hot(&mut self, hot: &Hot) {
        let place = hot.line.as_ref().map_or_else(String::new, |line| format!("  {}", line.short()));
        let text = format!("{}{place}", self.cut(&hot.name(), FUNCTION));
        self.line(&format!("{:INDENT$}{:>7} {}", "", share(hot.share), self.cut(&text, self.style.width - TEXT)));
        if let Some(text) = hot.line.as_ref().and_then(|line| line.text.as_ref()) {
            self.line(&format!("{:TEXT$}  {}", "", self.cut(text, self.style.width - TEXT - 2)));
        }
        if !hot.limits.is_empty() {
            self.wrapped(&format!("limited by {}", in_short(&hot.limits)), TEXT + 2, TEXT + 4);
        }
    }

    fn remedy(&mut self, number: usize, remedy: &Remedy) {
        self.wrapped(&format!("{number}. {}", remedy.text), INDENT, INDENT + 3);
        if let Some(command) = &remedy.command {
            // A command is copied: it is not cut.
            self.line(&format!("{:indent$}$ {command}", "", indent = INDENT + 3));
        }
    }

    /// A text as this terminal can show it.
    fn displayable(&self, text: &str) -> String {
        let text = self.micro(text.to_owned());
        if self.style.unicode { text } else { text.replace('×', "x") }
    }

    /// A sentence from column `first` on, its further lines from column `others` on.
    fn wrapped(&mut self, text: &str, first: usize, others: usize) {
        // A number and its percent sign stay together.
        let text = self.displayable(text).replace(" %", "\u{a0}%");
        let mut line = " ".repeat(first);
        let mut is_empty = true;
        for word in text.split(' ') {
            if !is_empty && width(&line) + 1 + width(word) > self.style.width {
                self.line(&line);
                line = " ".repeat(others);
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
            }
            line.push_str(head(&word.replace('\u{a0}', " "), self.style.width - others));
            is_empty = false;
        }
        self.line(&line);
    }
}
