//! What a key of `machine.toml` is: its name, kind, meaning and allowed values, declared beside the field.
//!
//! [`table!`] and [`tables!`] make a struct and its schema from one declaration. Loading, checking, showing
//! and hashing all walk the schema, so that a new key is one line in [`crate::spec`].

/// The value of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Integer(u64),
    /// A number with a fraction.
    Real(f64),
    /// On or off.
    Switch(bool),
    /// Text.
    Text(String),
    /// A row of whole numbers.
    List(Vec<u64>),
}

impl std::fmt::Display for Value {
    /// As TOML.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Integer(n) => f.write_str(&grouped(*n)),
            Value::Real(x) => write!(f, "{x:?}"),
            Value::Switch(on) => write!(f, "{on}"),
            Value::Text(text) => f.write_str(&quoted(text)),
            Value::List(list) => write!(f, "{list:?}"),
        }
    }
}

/// Text as a basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out + "\""
}

/// A number with `_` between groups of three digits, from five digits on.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let first = digits.len() % 3;
    let groups = (0..=digits.len() / 3).map(|i| &digits[(first + 3 * i).saturating_sub(3)..first + 3 * i]);
    groups.filter(|g| !g.is_empty()).collect::<Vec<_>>().join("_")
}

/// Most numbers of a row whose length is not fixed.
const MOST_IN_LIST: usize = 8;

/// The kind of value a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number up to the given one.
    Integer(u64),
    /// A number.
    Real,
    /// True or false.
    Switch,
    /// Text.
    Text,
    /// This number of whole numbers.
    List(usize),
    /// At most this number of whole numbers.
    UpTo(usize),
    /// One of these names, as text.
    Choice(&'static [&'static str]),
}

impl Kind {
    /// What is expected, in words.
    #[must_use]
    pub fn expects(self) -> String {
        match self {
            Kind::Integer(u64::MAX) => "a whole number, 0 or more".to_owned(),
            Kind::Integer(max) => format!("a whole number from 0 to {max}"),
            Kind::Real => "a number".to_owned(),
            Kind::Switch => "true or false".to_owned(),
            Kind::Text => "text in quotes".to_owned(),
            Kind::List(n) => format!("{n} whole numbers in square brackets"),
            Kind::UpTo(n) => format!("at most {n} whole numbers in square brackets"),
            Kind::Choice(names) => format!("one of {}", names.join(", ")),
        }
    }

    /// `value` as this kind, if it can be.
    #[must_use]
    pub fn accept(self, value: Value) -> Option<Value> {
        match (self, &value) {
            (Kind::Real, Value::Integer(n)) => return Some(Value::Real(*n as f64)),
            (Kind::Integer(max), Value::Integer(n)) if *n <= max => {}
            (Kind::Real, Value::Real(_)) | (Kind::Switch, Value::Switch(_)) | (Kind::Text, Value::Text(_)) => {}
            (Kind::List(n), Value::List(list)) if list.len() == n => {}
            (Kind::UpTo(n), Value::List(list)) if list.len() <= n => {}
            (Kind::Choice(names), Value::Text(text)) if names.contains(&text.as_str()) => {}
            _ => return None,
        }
        Some(value)
    }
}

/// A type that a key can have.
pub trait KeyType: Sized {
    /// The kind of value.
    const KIND: Kind;
    /// From a value that [`Kind::accept`] has let pass.
    fn read(value: &Value) -> Option<Self>;
    /// To a value.
    fn write(&self) -> Value;
}

macro_rules! key_type {
    ($ty:ty, $kind:expr, $variant:ident, $value:ident => $read:expr, $this:ident => $write:expr) => {
        impl KeyType for $ty {
            const KIND: Kind = $kind;
            fn read(value: &Value) -> Option<Self> {
                let Value::$variant($value) = value else { return None };
                $read
            }
            fn write(&self) -> Value {
                let $this = self;
                Value::$variant($write)
            }
        }
    };
}

key_type!(u64, Kind::Integer(u64::MAX), Integer, n => Some(*n), this => *this);
key_type!(u32, Kind::Integer(u32::MAX as u64), Integer, n => u32::try_from(*n).ok(), this => u64::from(*this));
key_type!(f64, Kind::Real, Real, x => Some(*x), this => *this);
key_type!(bool, Kind::Switch, Switch, on => Some(*on), this => *this);
key_type!(String, Kind::Text, Text, text => Some(text.clone()), this => this.clone());
key_type!([u64; 2], Kind::List(2), List, list => list.as_slice().try_into().ok(), this => this.to_vec());
key_type!([u64; 3], Kind::List(3), List, list => list.as_slice().try_into().ok(), this => this.to_vec());
key_type!([u64; 4], Kind::List(4), List, list => list.as_slice().try_into().ok(), this => this.to_vec());
key_type!([u64; 5], Kind::List(5), List, list => list.as_slice().try_into().ok(), this => this.to_vec());
key_type!(Vec<u64>, Kind::UpTo(MOST_IN_LIST), List, list => Some(list.clone()), this => this.clone());

/// The values that a key may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// Any of its kind.
    Any,
    /// Any; it is the content of a register, shown in hexadecimal.
    Register,
    /// From the first to the second. Like all rules, it applies to each number of a list.
    Range(u64, u64),
    /// A power of two from the first to the second.
    Power(u64, u64),
    /// One of these.
    OneOf(&'static [u64]),
    /// A number from the first to the second.
    Real(f64, f64),
}

impl Rule {
    /// Whether `value` satisfies the rule.
    #[must_use]
    pub fn allows(self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::List(list)) => list.iter().all(|&n| self.allows(&Value::Integer(n))),
            (Rule::Range(low, high), Value::Integer(n)) => (low..=high).contains(n),
            (Rule::Power(low, high), Value::Integer(n)) => n.is_power_of_two() && (low..=high).contains(n),
            (Rule::OneOf(list), Value::Integer(n)) => list.contains(n),
            // Not-a-number is in no range.
            (Rule::Real(low, high), Value::Real(x)) => (low..=high).contains(x),
            _ => true,
        }
    }

    /// The allowed values in words; none if all are allowed.
    #[must_use]
    pub fn words(self) -> Option<String> {
        match self {
            Rule::Any | Rule::Register => None,
            Rule::Range(low, high) => Some(format!("from {} to {}", grouped(low), grouped(high))),
            Rule::Power(low, high) => Some(format!("a power of two from {} to {}", grouped(low), grouped(high))),
            Rule::OneOf(list) => {
                Some(format!("one of {}", list.iter().map(|&n| grouped(n)).collect::<Vec<_>>().join(", ")))
            }
            Rule::Real(low, high) => Some(format!("from {low} to {high}")),
        }
    }
}

/// A key of a table.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// The kind of its value.
    pub kind: Kind,
    /// The values it may have.
    pub rule: Rule,
    /// The unit of its numbers; none for switches, texts, registers and numbers that are identifiers.
    pub unit: Option<&'static str>,
    /// Why it has no effect on a simulation, in any table; none for keys that have one. See [`Table::inert`].
    pub inert: Option<&'static str>,
    /// The policies of which it is an option; none for keys that always hold.
    pub option_of: Option<OptionOf>,
}

/// What a key is an option of: policies that another key of its table selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionOf {
    /// The key that selects a policy.
    pub selector: &'static str,
    /// The policies that have this option.
    pub policies: &'static [&'static str],
}

impl std::fmt::Display for OptionOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.selector, self.policies.join(" or "))
    }
}

/// A table of `machine.toml`.
#[derive(Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// What it describes.
    pub doc: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
    /// Keys that have no effect on a simulation in this table alone, and why.
    pub inert: &'static [(&'static str, &'static str)],
}

impl Table {
    /// The number of a key.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<usize> {
        self.keys.iter().position(|k| k.name == key)
    }

    /// Why one of its keys has no effect on a simulation; none for keys that have one.
    #[must_use]
    pub fn inert(&self, key: &Key) -> Option<&'static str> {
        let here = self.inert.iter().find(|(name, _)| *name == key.name).map(|(_, reason)| *reason);
        key.inert.or(here)
    }
}

/// What [`table!`] generates for a table in addition to its fields.
pub trait TableType: Sized {
    /// Its keys.
    const KEYS: &'static [Key];
    /// Its values, in the order of its keys.
    fn values(&self) -> Vec<Value>;
    /// From values in the order of its keys, accepted by their kinds.
    fn build(values: &[Value]) -> Option<Self>;
}

/// Declares a table of `machine.toml`: its fields with the values allowed and their unit. A field that has no effect on a
/// simulation says `inert` and why. A field that is an option of some policies alone says `option of`, the field that
/// selects the policy, and their names.
macro_rules! table {
    ($(#[$doc:meta])* $name:ident {
        $($(#[doc = $fdoc:literal])* $field:ident: $ty:ty $(=> $rule:expr)? $(; unit $unit:literal)? $(; inert $reason:literal)?
            $(; option of $selector:ident $($policy:literal)or+)?,)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[doc = $fdoc])* pub $field: $ty,)+
        }

        impl $crate::schema::TableType for $name {
            const KEYS: &'static [$crate::schema::Key] = &[
                $($crate::schema::Key {
                    name: stringify!($field),
                    doc: concat!($($fdoc),*),
                    kind: <$ty as $crate::schema::KeyType>::KIND,
                    rule: $crate::schema::first_rule(&[$($rule,)? $crate::schema::Rule::Any]),
                    unit: $crate::schema::first_text(&[$(Some($unit),)? None]),
                    inert: $crate::schema::first_text(&[$(Some($reason),)? None]),
                    option_of: $crate::schema::first_option(&[$(Some($crate::schema::OptionOf {
                        selector: stringify!($selector),
                        policies: &[$($policy),+],
                    }),)? None]),
                },)+
            ];
            fn values(&self) -> Vec<$crate::schema::Value> {
                use $crate::schema::KeyType as _;
                vec![$(self.$field.write(),)+]
            }
            fn build(values: &[$crate::schema::Value]) -> Option<Self> {
                use $crate::schema::KeyType as _;
                let mut values = values.iter();
                Some($name {
                    $($field: <$ty>::read(values.next()?)?,)+
                })
            }
        }
    };
}
pub(crate) use table;

/// The rule that a field gives, or the default.
pub(crate) const fn first_rule(rules: &[Rule]) -> Rule {
    rules[0]
}

/// The text a field gives, if it does.
pub(crate) const fn first_text(texts: &[Option<&'static str>]) -> Option<&'static str> {
    texts[0]
}

/// What a field is an option of, if it is one.
pub(crate) const fn first_option(options: &[Option<OptionOf>]) -> Option<OptionOf> {
    options[0]
}

/// Declares the policies among which a key selects: their names in `machine.toml`, and what they do.
macro_rules! policies {
    ($(#[$doc:meta])* $name:ident { $($(#[doc = $pdoc:literal])* $policy:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[doc = $pdoc])* $policy,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$policy),+];

            /// The name in `machine.toml`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$policy => $word,)+
                }
            }
        }

        impl $crate::schema::KeyType for $name {
            const KIND: $crate::schema::Kind = $crate::schema::Kind::Choice(&[$($word),+]);
            fn read(value: &$crate::schema::Value) -> Option<Self> {
                let $crate::schema::Value::Text(name) = value else { return None };
                $name::ALL.iter().copied().find(|policy| policy.name() == name)
            }
            fn write(&self) -> $crate::schema::Value {
                $crate::schema::Value::Text(self.name().to_owned())
            }
        }
    };
}
pub(crate) use policies;

/// Keys that had another name in earlier versions: table, earlier name, name.
const RENAMED: [(&str, &str, &str); 3] = [
    ("window", "relay_registers", "temporary_operand_registers"),
    ("tlb", "l2_beside", "l2_only_sizes"),
    ("tlb", "l1_lru", "l1_replacement"),
];

/// The name of a key that had this one in earlier versions.
pub(crate) fn renamed(table: &str, key: &str) -> Option<&'static str> {
    RENAMED.into_iter().find(|&(of, earlier, _)| of == table && earlier == key).map(|(.., name)| name)
}

/// The first sentence of a key's meaning, without its full stop.
pub(crate) fn first_sentence(doc: &str) -> &str {
    doc.split_once(". ").map_or(doc, |(first, _)| first).trim().trim_end_matches('.')
}

/// Declares the tables of `machine.toml` and their schema. Several tables may have one type; a table says `inert` for a key
/// that has no effect in this table alone, and why.
macro_rules! tables {
    ($(#[$doc:meta])* $name:ident {
        $($(#[doc = $fdoc:literal])* $field:ident: $ty:ty $(; inert $key:ident $reason:literal)*,)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[doc = $fdoc])* pub $field: $ty,)+
        }

        /// All tables, in the order in which they are shown.
        pub const SCHEMA: &[$crate::schema::Table] = &[
            $($crate::schema::Table {
                name: stringify!($field),
                doc: concat!($($fdoc),*),
                keys: <$ty as $crate::schema::TableType>::KEYS,
                inert: &[$((stringify!($key), $reason)),*],
            },)+
        ];

        impl $name {
            /// The values of all tables, in the order of [`SCHEMA`].
            #[must_use]
            pub fn values(&self) -> Vec<Vec<$crate::schema::Value>> {
                use $crate::schema::TableType as _;
                vec![$(self.$field.values(),)+]
            }
            /// From values in the order of [`SCHEMA`], accepted by their kinds.
            #[must_use]
            pub fn build(values: &[Vec<$crate::schema::Value>]) -> Option<Self> {
                use $crate::schema::TableType as _;
                let mut tables = values.iter();
                Some($name { $($field: <$ty>::build(tables.next()?)?,)+ })
            }
        }
    };
}
pub(crate) use tables;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::SCHEMA;

    #[test]
    fn long_numbers_are_shown_in_groups() {
        assert_eq!(grouped(9999), "9999");
        assert_eq!(grouped(65_536), "65_536");
        assert_eq!(grouped(123_456), "123_456");
        assert_eq!(grouped(8_589_934_592), "8_589_934_592");
    }

    /// Keys whose numbers name something and measure nothing.
    const NAMES: [&str; 9] = [
        "dczid",
        "first_core",
        "first_node",
        "node_distances",
        "assistant_cmgs",
        "mode",
        "assign",
        "default_sector",
        "distances",
    ];

    #[test]
    fn every_number_has_limits_and_a_unit_and_every_key_a_meaning() {
        for table in SCHEMA {
            for key in table.keys {
                let number = matches!(key.kind, Kind::Integer(_) | Kind::Real | Kind::List(_) | Kind::UpTo(_));
                assert!(!number || key.rule != Rule::Any, "{}.{} has no limits", table.name, key.name);
                let named = key.rule == Rule::Register || NAMES.contains(&key.name);
                assert_eq!(key.unit.is_some(), number && !named, "{}.{} needs a unit", table.name, key.name);
                assert!(key.doc.len() > 3, "{}.{} has no meaning", table.name, key.name);
            }
        }
    }

    #[test]
    fn an_option_names_policies_that_a_key_of_its_table_selects() {
        for table in SCHEMA {
            for option in table.keys.iter().filter_map(|key| key.option_of) {
                let selector = table.find(option.selector).expect("a key of the same table");
                let Kind::Choice(policies) = table.keys[selector].kind else {
                    panic!("{} selects nothing", option.selector)
                };
                assert!(option.policies.iter().all(|policy| policies.contains(policy)), "{option} in {}", table.name);
            }
        }
    }

    #[test]
    fn rules_say_and_do_the_same() {
        let rule = Rule::Power(4, 64);
        assert!(rule.allows(&Value::Integer(64)) && !rule.allows(&Value::Integer(48)));
        assert!(!rule.allows(&Value::Integer(128)) && !rule.allows(&Value::Integer(2)));
        assert_eq!(rule.words().unwrap(), "a power of two from 4 to 64");
        assert!(!Rule::Real(0.5, 2.0).allows(&Value::Real(f64::NAN)));
        assert!(!Rule::Range(0, 3).allows(&Value::List(vec![1, 4])));
    }
}
