//! Formulas: `+ - * /`, parentheses, numbers, names, `max(a, b)` and `min(a, b)`.
//!
//! ```text
//! sum     := product (("+" | "-") product)*
//! product := factor (("*" | "/") factor)*
//! factor  := "-" factor | "(" sum ")" | ("max" | "min") "(" sum "," sum ")" | number | name
//! ```
//!
//! A word that starts with a digit and is no number is a name: events are called `0INST_COMMIT`. Numbers have
//! no sign in their exponent.

/// A parsed formula.
#[derive(Clone, Debug, PartialEq)]
pub enum Formula {
    /// A number; finite.
    Number(f64),
    /// Something called by its name.
    Name(String),
    /// The negative.
    Minus(Box<Formula>),
    /// Two operands joined.
    Join(Operator, Box<Formula>, Box<Formula>),
}

/// What joins two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Max,
    Min,
}

/// Levels of parentheses and signs that a formula may have; more is a mistake, and would use up the stack.
const MAX_DEPTH: u32 = 64;

impl Formula {
    /// Parses a formula.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse(text: &str) -> Result<Formula, String> {
        let mut parser = Parser { words: words(text)?, next: 0 };
        let formula = parser.sum(0)?;
        match parser.peek() {
            None => Ok(formula),
            Some(word) => Err(format!("'{word}' does not belong where it stands")),
        }
    }

    /// Its value, where `value_of` gives the value of a name. `None` when a name has none. A quotient of
    /// anything and zero is zero: a rate of something that never happened.
    pub fn value(&self, value_of: &impl Fn(&str) -> Option<f64>) -> Option<f64> {
        match self {
            Formula::Number(n) => Some(*n),
            Formula::Name(name) => value_of(name),
            Formula::Minus(a) => Some(-a.value(value_of)?),
            Formula::Join(operator, a, b) => {
                let (a, b) = (a.value(value_of)?, b.value(value_of)?);
                Some(match operator {
                    Operator::Add => a + b,
                    Operator::Subtract => a - b,
                    Operator::Multiply => a * b,
                    Operator::Divide if b == 0.0 => 0.0,
                    Operator::Divide => a / b,
                    Operator::Max => a.max(b),
                    Operator::Min => a.min(b),
                })
            }
        }
    }

    /// All names in it, from left to right, repeated where they repeat.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        match self {
            Formula::Number(_) => Vec::new(),
            Formula::Name(name) => vec![name],
            Formula::Minus(a) => a.names(),
            Formula::Join(_, a, b) => [a.names(), b.names()].concat(),
        }
    }
}

/// Splits a text into words, numbers and signs.
fn words(text: &str) -> Result<Vec<&str>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let in_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let length = match first {
            '+' | '-' | '*' | '/' | '(' | ')' | ',' => 1,
            c if in_word(c) => rest.find(|c| !in_word(c)).unwrap_or(rest.len()),
            c => return Err(format!("'{c}' means nothing here")),
        };
        let (word, after) = rest.split_at(length);
        words.push(word);
        rest = after.trim_start();
    }
    Ok(words)
}

struct Parser<'a> {
    words: Vec<&'a str>,
    next: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.next).copied()
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(word);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        if self.take(word) {
            return Ok(());
        }
        Err(format!("expected '{word}' {}", self.peek().map_or("at the end".to_owned(), |w| format!("before '{w}'"))))
    }

    fn sum(&mut self, depth: u32) -> Result<Formula, String> {
        self.chain(depth, &[("+", Operator::Add), ("-", Operator::Subtract)], Parser::product)
    }

    fn product(&mut self, depth: u32) -> Result<Formula, String> {
        self.chain(depth, &[("*", Operator::Multiply), ("/", Operator::Divide)], Parser::factor)
    }

    /// Operands joined by `operators`, from left to right.
    fn chain(
        &mut self,
        depth: u32,
        operators: &[(&str, Operator)],
        operand: fn(&mut Parser<'a>, u32) -> Result<Formula, String>,
    ) -> Result<Formula, String> {
        let mut left = operand(self, depth)?;
        let mut links = 0;
        while let Some(&(_, operator)) = operators.iter().find(|(word, _)| self.take(word)) {
            left = Formula::Join(operator, Box::new(left), Box::new(operand(self, depth)?));
            // Each link is one more level of the tree that the result is.
            links += 1;
            if depth + links > MAX_DEPTH {
                return Err("too long".to_owned());
            }
        }
        Ok(left)
    }

    fn factor(&mut self, depth: u32) -> Result<Formula, String> {
        if depth == MAX_DEPTH {
            return Err("nested too deeply".to_owned());
        }
        let word = self.peek().ok_or("something is missing at the end")?;
        self.next += 1;
        match word {
            "-" => Ok(Formula::Minus(Box::new(self.factor(depth + 1)?))),
            "(" => {
                let inside = self.sum(depth + 1)?;
                self.expect(")")?;
                Ok(inside)
            }
            "max" => self.call(Operator::Max, depth),
            "min" => self.call(Operator::Min, depth),
            "+" | "*" | "/" | ")" | "," => Err(format!("something is missing before '{word}'")),
            _ => number_or_name(word),
        }
    }

    fn call(&mut self, operator: Operator, depth: u32) -> Result<Formula, String> {
        self.expect("(")?;
        let a = self.sum(depth + 1)?;
        self.expect(",")?;
        let b = self.sum(depth + 1)?;
        self.expect(")")?;
        Ok(Formula::Join(operator, Box::new(a), Box::new(b)))
    }
}

fn number_or_name(word: &str) -> Result<Formula, String> {
    // Rust reads "inf" and "nan" as numbers too.
    let digit = word.starts_with(|c: char| c.is_ascii_digit());
    match word.parse::<f64>() {
        Ok(n) if digit && n.is_finite() => Ok(Formula::Number(n)),
        Ok(_) if digit => Err(format!("'{word}' is too large")),
        _ if word.contains('.') => Err(format!("'{word}' is neither a number nor a name")),
        _ => Ok(Formula::Name(word.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(text: &str) -> f64 {
        let names = |name: &str| match name {
            "A" => Some(3.0),
            "0B" => Some(4.0),
            "e" => Some(0.5),
            _ => None,
        };
        Formula::parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).value(&names).expect("names have values")
    }

    #[test]
    fn formulas_follow_the_rules_of_arithmetic() {
        assert_eq!(value("1 + 2 * 3"), 7.0);
        assert_eq!(value("(1 + 2) * 3"), 9.0);
        assert_eq!(value("10 - 4 - 3"), 3.0);
        assert_eq!(value("100 / 10 / 5"), 2.0);
        assert_eq!(value("2 * -A"), -6.0);
        assert_eq!(value("--A"), 3.0);
        assert_eq!(value("A*0B/1e1"), 1.2);
        assert_eq!(value("1.5e3 * e"), 750.0);
        assert_eq!(value("max(0, A - 0B) + min(A, 0B)"), 3.0);
    }

    #[test]
    fn a_quotient_by_zero_is_zero_and_a_missing_name_has_no_value() {
        assert_eq!(value("5 / (A - 3)"), 0.0);
        assert_eq!(Formula::parse("1 + X").expect("a formula").value(&|_| None), None);
        assert_eq!(Formula::parse("0 * X").expect("a formula").value(&|_| None), None);
    }

    #[test]
    fn names_are_listed_as_they_stand() {
        let formula = Formula::parse("max(0, 0INST_COMMIT - A) / A").expect("a formula");
        assert_eq!(formula.names(), ["0INST_COMMIT", "A", "A"]);
    }

    #[test]
    fn mistakes_are_explained() {
        let cases = [
            ("", "something is missing at the end"),
            ("1 +", "something is missing at the end"),
            ("* 2", "something is missing before '*'"),
            ("(1 + 2", "expected ')' at the end"),
            ("max(1 2)", "expected ',' before '2'"),
            ("max", "expected '(' at the end"),
            ("A B", "'B' does not belong where it stands"),
            ("A % B", "'%' means nothing here"),
            ("1e999", "'1e999' is too large"),
            ("1.2.3", "'1.2.3' is neither a number nor a name"),
        ];
        for (text, message) in cases {
            assert_eq!(Formula::parse(text).expect_err(text), message, "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_before_it_uses_up_the_stack() {
        assert!(Formula::parse(&"(".repeat(100_000)).is_err());
        assert!(Formula::parse(&"-".repeat(100_000)).is_err());
        assert!(Formula::parse(&vec!["1"; 100_000].join("+")).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[-+*/(),. a-zA-Z0-9_µ]{0,80}") {
            let _ = Formula::parse(&text);
        }

        #[test]
        fn whole_numbers_calculate_as_in_rust(a in -999i32..999, b in -999i32..999, c in 1i32..999) {
            let text = format!("{a} - ({b}) * {c} + {a} / {c}");
            let (a, b, c) = (f64::from(a), f64::from(b), f64::from(c));
            prop_assert_eq!(value(&text), a - b * c + a / c);
        }
    }
}
