//! Guest memory as its users see it.

mod objects;
