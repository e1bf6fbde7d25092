//! The integration tests of `fxscope-aarch64`, as one binary so that they link once.

mod differential;
mod fast_paths;
mod floating_point;
mod hostile;
mod inactive_elements;
mod operands;
mod tagged_addresses;
