//! Text with the names of factors in braces.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use super::plan::Scalar;

/// Text with the names of factors in braces. `{{` and `}}` stand for braces.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Factor(String),
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// If a brace has no partner.
    pub fn parse(text: &str) -> Result<Template, String> {
        let lonely =
            |brace| format!("'{text}': '{brace}' has no partner; write {brace}{brace} for a brace of the program");
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            let behind = &rest[at + 1..];
            if let Some(behind) = behind.strip_prefix(brace) {
                plain.push_str(brace);
                rest = behind;
                continue;
            }
            let end = if brace == "{" { behind.find(['{', '}']) } else { None };
            let end = end.filter(|&end| behind[end..].starts_with('}')).ok_or_else(|| lonely(brace))?;
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::Factor(behind[..end].to_owned()));
            rest = &behind[end + 1..];
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Template { pieces })
    }

    /// Returns the names of factors in it.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Factor(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// Returns the text with the values of all factors. A factor without a value keeps its braces.
    #[must_use]
    pub fn filled(&self, values: &BTreeMap<String, Scalar>) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Factor(name) => values.get(name).map_or_else(|| format!("{{{name}}}"), Scalar::to_string),
        };
        self.pieces.iter().map(piece).collect()
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Template, D::Error> {
        let text = Scalar::deserialize(deserializer)?.to_string();
        Template::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filled(text: &str) -> String {
        let values = BTreeMap::from([("n".to_owned(), Scalar::Integer(8)), ("x".to_owned(), Scalar::Number(0.5))]);
        Template::parse(text).expect("a template").filled(&values)
    }

    #[test]
    fn names_in_braces_stand_for_values() {
        assert_eq!(filled("n={n}"), "n=8");
        assert_eq!(filled("{n}x{n},{x}"), "8x8,0.5");
        assert_eq!(filled("plain"), "plain");
        assert_eq!(filled(""), "");
    }

    #[test]
    fn two_braces_are_one_of_the_program() {
        assert_eq!(filled("{{n}}"), "{n}");
        assert_eq!(filled("{{{n}}}"), "{8}");
    }

    #[test]
    fn a_brace_without_partner_is_refused() {
        for text in ["{n", "n}", "{n{", "{a{b}}", "}{"] {
            let message = Template::parse(text).expect_err(text);
            assert!(message.contains("has no partner"), "{message}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_kept_when_its_braces_are_doubled(text in ".*") {
            let doubled = text.replace('{', "{{").replace('}', "}}");
            prop_assert_eq!(filled(&doubled), text);
        }
    }
}
