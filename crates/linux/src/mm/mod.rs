//! Address spaces: what is mapped, and the pages that the modelled system allocates.

pub(crate) mod address_space;
pub(crate) mod mapped;
pub mod pages;
pub(crate) mod shared_files;
pub(crate) mod user;
