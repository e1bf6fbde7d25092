//! Serialises arrays of any length, boxed or not: `#[serde(with = "fxscope_calendar::array")]`.

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

/// An array that can be built from its elements.
pub trait Array: Sized {
    /// The elements.
    type Item;
    /// Returns the elements in order.
    fn items(&self) -> &[Self::Item];
    /// Returns the array with these elements; `None` if there are too many or too few.
    fn from_items(items: Vec<Self::Item>) -> Option<Self>;
}

impl<T, const N: usize> Array for [T; N] {
    type Item = T;
    fn items(&self) -> &[T] {
        self
    }
    fn from_items(items: Vec<T>) -> Option<Self> {
        items.try_into().ok()
    }
}

impl<T, const N: usize> Array for Box<[T; N]> {
    type Item = T;
    fn items(&self) -> &[T] {
        &self[..]
    }
    fn from_items(items: Vec<T>) -> Option<Self> {
        items.try_into().ok()
    }
}

/// Serialises the elements, preceded by their number.
///
/// # Errors
/// When the serialiser fails.
pub fn serialize<A: Array, S: Serializer>(array: &A, serializer: S) -> Result<S::Ok, S::Error>
where
    A::Item: Serialize,
{
    array.items().serialize(serializer)
}

/// Reads the elements back.
///
/// # Errors
/// When the input is not a list, or has a different length.
pub fn deserialize<'de, A: Array, D: Deserializer<'de>>(deserializer: D) -> Result<A, D::Error>
where
    A::Item: Deserialize<'de>,
{
    let items = Vec::deserialize(deserializer)?;
    let length = items.len();
    A::from_items(items).ok_or_else(|| D::Error::custom(format_args!("an array does not have {length} elements")))
}
