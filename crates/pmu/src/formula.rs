//! Formulas: `+ - * /`, comparisons, parentheses, numbers, names and functions.
//!
//! ```text
//! formula := sum (("<" | ">") sum)?
//! sum     := product (("+" | "-") product)*
//! product := factor (("*" | "/") factor)*
//! factor  := "-" factor | "(" formula ")" | function "(" formula ("," formula)* ")" | number | name
//! ```
//!
//! A comparison is 1 if it holds, else 0.
//!
//! A word that starts with a digit and is not a number is a name, such as the event `0INST_COMMIT`. `EVENT@3` is the
//! count of an event in the pass of event group 3. Numbers have no sign in their exponent.
//!
//! | Function | What it is |
//! |---|---|
//! | `max(a, b)`, `min(a, b)` | the larger, the smaller |
//! | `same(a, b)` | 1 when both are equal, else 0 |
//! | `known(a, b, …)` | the first that has a value |
//! | `first(x)` | x of the first thread |
//! | `most(x)` | the largest x of a thread |
//! | `cmg(x)` | of each CMG the mean x of its threads, summed: for events whose count every thread of a CMG reads |
//!
//! The last three evaluate threads one by one. For a single thread, `first` and `most` consider its process on its CMG,
//! and `cmg(x)` is its own x.

/// A parsed formula; `N` is the type of its resolved names.
#[derive(Clone, Debug, PartialEq)]
pub enum Formula<N = String> {
    /// A finite number.
    Number(f64),
    /// A name.
    Name(N),
    /// Negation.
    Minus(Box<Formula<N>>),
    /// A binary operation.
    Join(Operator, Box<Formula<N>>, Box<Formula<N>>),
    /// The first operand that has a value.
    Known(Vec<Formula<N>>),
    /// An operand evaluated thread by thread.
    Threads(Reduction, Box<Formula<N>>),
}

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Max,
    Min,
    Same,
    Less,
    Greater,
}

/// How the values of threads are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// That of the first thread.
    First,
    /// The maximum.
    Most,
    /// The sum over CMGs of the mean of their threads.
    Cmg,
}

/// Provides the values of names, and evaluates over threads.
pub trait Scope<N> {
    /// The value of a name; `None` if it has none.
    fn name(&self, name: &N) -> Option<f64>;
    /// The value of a formula over threads.
    fn threads(&self, over: Reduction, formula: &Formula<N>) -> Option<f64>;
}

/// Maximum nesting depth; more is a mistake and would exhaust the stack.
const MAX_DEPTH: u32 = 64;

impl Formula {
    /// Parses a formula.
    ///
    /// # Errors
    /// The error and its location.
    pub fn parse(text: &str) -> Result<Formula, String> {
        let mut parser = Parser { words: words(text)?, next: 0 };
        let formula = parser.comparison(0)?;
        match parser.peek() {
            None => Ok(formula),
            Some(word) => Err(format!("'{word}' is unexpected here")),
        }
    }
}

impl<N> Formula<N> {
    /// Returns the value; `None` if a name has none. Division by zero gives zero: the rate of something that never
    /// happened.
    pub fn value(&self, scope: &impl Scope<N>) -> Option<f64> {
        match self {
            Formula::Number(n) => Some(*n),
            Formula::Name(name) => scope.name(name),
            Formula::Minus(a) => Some(-a.value(scope)?),
            Formula::Join(operator, a, b) => {
                let (a, b) = (a.value(scope)?, b.value(scope)?);
                Some(match operator {
                    Operator::Add => a + b,
                    Operator::Subtract => a - b,
                    Operator::Multiply => a * b,
                    Operator::Divide if b == 0.0 => 0.0,
                    Operator::Divide => a / b,
                    Operator::Max => a.max(b),
                    Operator::Min => a.min(b),
                    Operator::Same => f64::from(u8::from(a == b)),
                    Operator::Less => f64::from(u8::from(a < b)),
                    Operator::Greater => f64::from(u8::from(a > b)),
                })
            }
            Formula::Known(all) => all.iter().find_map(|a| a.value(scope)),
            Formula::Threads(over, a) => scope.threads(*over, a),
        }
    }

    /// Returns all names, from left to right, with repetitions.
    #[must_use]
    pub fn names(&self) -> Vec<&N> {
        match self {
            Formula::Name(name) => vec![name],
            _ => self.operands().into_iter().flat_map(Formula::names).collect(),
        }
    }

    /// Returns the operand formulas.
    #[must_use]
    pub fn operands(&self) -> Vec<&Formula<N>> {
        match self {
            Formula::Number(_) | Formula::Name(_) => Vec::new(),
            Formula::Minus(a) | Formula::Threads(_, a) => vec![a],
            Formula::Join(_, a, b) => vec![a, b],
            Formula::Known(all) => all.iter().collect(),
        }
    }

    /// Returns the formula with renamed names.
    ///
    /// # Errors
    /// The first error of `become`.
    pub fn rename<M, E>(&self, r#become: &mut impl FnMut(&N) -> Result<M, E>) -> Result<Formula<M>, E> {
        let mut boxed = |a: &Formula<N>| a.rename(r#become).map(Box::new);
        Ok(match self {
            Formula::Number(n) => Formula::Number(*n),
            Formula::Name(name) => Formula::Name(r#become(name)?),
            Formula::Minus(a) => Formula::Minus(boxed(a)?),
            Formula::Join(operator, a, b) => Formula::Join(*operator, boxed(a)?, boxed(b)?),
            Formula::Known(all) => Formula::Known(all.iter().map(|a| a.rename(r#become)).collect::<Result<_, _>>()?),
            Formula::Threads(over, a) => Formula::Threads(*over, boxed(a)?),
        })
    }
}

/// Splits a text into tokens.
fn words(text: &str) -> Result<Vec<&str>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let in_word = |c: char| c.is_ascii_alphanumeric() || "_.@".contains(c);
        let length = match first {
            '+' | '-' | '*' | '/' | '(' | ')' | ',' | '<' | '>' => 1,
            c if in_word(c) => rest.find(|c| !in_word(c)).unwrap_or(rest.len()),
            c => return Err(format!("'{c}' is not a valid character")),
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

    /// A sum, or a comparison of two.
    fn comparison(&mut self, depth: u32) -> Result<Formula, String> {
        let left = self.sum(depth)?;
        let operators = [("<", Operator::Less), (">", Operator::Greater)];
        match operators.into_iter().find(|(word, _)| self.take(word)) {
            // The comparison adds a level to the tree.
            Some((_, operator)) => Ok(Formula::Join(operator, Box::new(left), Box::new(self.sum(depth + 1)?))),
            None => Ok(left),
        }
    }

    fn sum(&mut self, depth: u32) -> Result<Formula, String> {
        self.chain(depth, &[("+", Operator::Add), ("-", Operator::Subtract)], Parser::product)
    }

    fn product(&mut self, depth: u32) -> Result<Formula, String> {
        self.chain(depth, &[("*", Operator::Multiply), ("/", Operator::Divide)], Parser::factor)
    }

    /// A left-associative chain of operands joined by `operators`.
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
            // Each link adds one level to the resulting tree.
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
                let inside = self.comparison(depth + 1)?;
                self.expect(")")?;
                Ok(inside)
            }
            "max" => self.join(Operator::Max, depth),
            "min" => self.join(Operator::Min, depth),
            "same" => self.join(Operator::Same, depth),
            "known" => Ok(Formula::Known(self.operands(depth)?)),
            "first" => self.over(Reduction::First, depth),
            "most" => self.over(Reduction::Most, depth),
            "cmg" => self.over(Reduction::Cmg, depth),
            "+" | "*" | "/" | ")" | "," | "<" | ">" => Err(format!("something is missing before '{word}'")),
            _ => number_or_name(word),
        }
    }

    /// The operands of a function.
    fn operands(&mut self, depth: u32) -> Result<Vec<Formula>, String> {
        self.expect("(")?;
        let mut operands = vec![self.comparison(depth + 1)?];
        while self.take(",") {
            operands.push(self.comparison(depth + 1)?);
        }
        self.expect(")")?;
        Ok(operands)
    }

    fn join(&mut self, operator: Operator, depth: u32) -> Result<Formula, String> {
        self.expect("(")?;
        let a = self.comparison(depth + 1)?;
        self.expect(",")?;
        let b = self.comparison(depth + 1)?;
        self.expect(")")?;
        Ok(Formula::Join(operator, Box::new(a), Box::new(b)))
    }

    fn over(&mut self, over: Reduction, depth: u32) -> Result<Formula, String> {
        self.expect("(")?;
        let inside = self.comparison(depth + 1)?;
        self.expect(")")?;
        Ok(Formula::Threads(over, Box::new(inside)))
    }
}

fn number_or_name(word: &str) -> Result<Formula, String> {
    // Rust parses "inf" and "nan" as numbers, too.
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

    /// Three names with values; functions over threads evaluate their operand.
    struct Names;

    impl Scope<String> for Names {
        fn name(&self, name: &String) -> Option<f64> {
            match name.as_str() {
                "A" => Some(3.0),
                "0B" => Some(4.0),
                "e@17" => Some(0.5),
                _ => None,
            }
        }

        fn threads(&self, _: Reduction, formula: &Formula) -> Option<f64> {
            formula.value(self)
        }
    }

    fn value(text: &str) -> f64 {
        Formula::parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).value(&Names).expect("names have values")
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
        assert_eq!(value("1.5e3 * e@17"), 750.0);
        assert_eq!(value("max(0, A - 0B) + min(A, 0B)"), 3.0);
        assert_eq!(value("same(A, 3) + 10 * same(A, 0B)"), 1.0);
        assert_eq!(value("cmg(2 * A) + first(A) + most(1)"), 10.0);
        assert_eq!(value("A + 1 > 0B - 1"), 1.0);
        assert_eq!(value("A < 3"), 0.0);
        assert_eq!(value("10 * (A < 0B) + max(A > 0B, 5)"), 15.0);
    }

    #[test]
    fn division_by_zero_is_zero_and_a_missing_name_has_no_value() {
        assert_eq!(value("5 / (A - 3)"), 0.0);
        assert_eq!(Formula::parse("1 + X").expect("a formula").value(&Names), None);
        assert_eq!(Formula::parse("0 * X").expect("a formula").value(&Names), None);
    }

    #[test]
    fn known_takes_the_first_operand_with_a_value() {
        assert_eq!(value("known(1 + X, A, 0B)"), 3.0);
        assert_eq!(Formula::parse("known(X, X)").expect("a formula").value(&Names), None);
    }

    #[test]
    fn names_are_listed_in_order() {
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
            ("A B", "'B' is unexpected here"),
            ("A < B < A", "'<' is unexpected here"),
            ("> A", "something is missing before '>'"),
            ("A % B", "'%' is not a valid character"),
            ("1e999", "'1e999' is too large"),
            ("1.2.3", "'1.2.3' is neither a number nor a name"),
        ];
        for (text, message) in cases {
            assert_eq!(Formula::parse(text).expect_err(text), message, "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_before_it_exhausts_the_stack() {
        assert!(Formula::parse(&"(".repeat(100_000)).is_err());
        assert!(Formula::parse(&"-".repeat(100_000)).is_err());
        assert!(Formula::parse(&vec!["1"; 100_000].join("+")).is_err());
    }

    proptest! {
        #[test]
        fn no_text_causes_a_panic(text in "[-+*/<>(),. a-zA-Z0-9_@µ]{0,80}") {
            let _ = Formula::parse(&text);
        }

        #[test]
        fn integers_evaluate_as_in_rust(a in -999i32..999, b in -999i32..999, c in 1i32..999) {
            let text = format!("{a} - ({b}) * {c} + {a} / {c}");
            let (a, b, c) = (f64::from(a), f64::from(b), f64::from(c));
            prop_assert_eq!(value(&text), a - b * c + a / c);
        }
    }
}
