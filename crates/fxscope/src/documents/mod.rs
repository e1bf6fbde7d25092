//! What is made from the definition of the command line: the pages of the manual, completions, the reference.

mod completions;
mod manual;
mod reference;
#[cfg(test)]
mod tests;

pub(crate) use completions::completions;
pub(crate) use manual::{all_pages, page_of};
pub(crate) use reference::reference;
