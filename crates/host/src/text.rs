//! Text of programs and files, fit to be shown.

use std::borrow::Cow;

/// What stands for a character that is not shown.
const REPLACEMENT: char = '\u{fffd}';

/// Whether a character could play tricks on a terminal: control characters, escape sequences with them, and those that turn
/// the direction of writing (Unicode Standard Annex 9).
fn is_trick(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `text` on one line, without characters that could play tricks on a terminal.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    replaced(text, is_trick)
}

/// The same for a text of several lines, which stay.
#[must_use]
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_trick(c) && c != '\n')
}

fn replaced(text: &str, wrong: impl Fn(char) -> bool) -> Cow<'_, str> {
    match text.contains(&wrong) {
        true => Cow::Owned(text.chars().map(|c| if wrong(c) { REPLACEMENT } else { c }).collect()),
        false => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_turns_of_direction_lose_what_makes_them_work() {
        assert_eq!(printable("a\x1b[31mred\x07\u{9b}2J\r\n"), "a\u{fffd}[31mred\u{fffd}\u{fffd}2J\u{fffd}\u{fffd}");
        assert_eq!(printable("exe.\u{202e}fdp"), "exe.\u{fffd}fdp");
        assert_eq!(printable_lines("one\ntwo\x1b"), "one\ntwo\u{fffd}");
        for text in ["kernel.elf", "Ångström µ 行列", ""] {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text));
        }
    }
}
