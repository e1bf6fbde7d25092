//! Makes text from programs and files safe to display.

use std::borrow::Cow;

/// Replaces a character that is not displayed.
const REPLACEMENT: char = '\u{fffd}';

/// Returns whether a character could mislead a terminal or its reader: control characters, which begin escape sequences, and
/// those that change the direction of writing (Unicode Standard Annex 9).
fn is_misleading(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns `text` on one line, without characters that could mislead a terminal or its reader.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    replaced(text, is_misleading)
}

/// The same for text of several lines; line breaks stay.
#[must_use]
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_misleading(c) && c != '\n')
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
    fn escape_sequences_and_changes_of_direction_are_disabled() {
        assert_eq!(printable("a\x1b[31mred\x07\u{9b}2J\r\n"), "a\u{fffd}[31mred\u{fffd}\u{fffd}2J\u{fffd}\u{fffd}");
        assert_eq!(printable("exe.\u{202e}fdp"), "exe.\u{fffd}fdp");
        assert_eq!(printable_lines("one\ntwo\x1b"), "one\ntwo\u{fffd}");
        for text in ["kernel.elf", "Ångström µ 行列", ""] {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text));
        }
    }
}
