//! Words and variables as text in serialised scenarios.

/// Words of a command line.
pub(crate) mod words {
    use std::ffi::OsString;

    use serde::ser::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(crate) fn serialize<S: Serializer>(words: &[OsString], serializer: S) -> Result<S::Ok, S::Error> {
        let text: Option<Vec<&str>> = words.iter().map(|word| word.to_str()).collect();
        text.ok_or_else(|| S::Error::custom("an argument is not UTF-8"))?.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<OsString>, D::Error> {
        Ok(Vec::<String>::deserialize(deserializer)?.into_iter().map(OsString::from).collect())
    }
}

/// Variables of an environment.
pub(crate) mod variables {
    use std::ffi::OsString;

    use serde::ser::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(crate) fn serialize<S: Serializer>(pairs: &[(OsString, OsString)], serializer: S) -> Result<S::Ok, S::Error> {
        let text: Option<Vec<_>> = pairs.iter().map(|(name, value)| Some((name.to_str()?, value.to_str()?))).collect();
        text.ok_or_else(|| S::Error::custom("a variable of the environment is not UTF-8"))?.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(OsString, OsString)>, D::Error> {
        let pairs = Vec::<(String, String)>::deserialize(deserializer)?;
        Ok(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}
