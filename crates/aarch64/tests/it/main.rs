//! The integration tests of `fxscope-aarch64`, as one binary so that they link once.

mod arithmetic;
mod atomics;
mod common;
mod coverage;
mod crypto;
mod decoder;
mod differential;
mod fast_paths;
mod first_fault_loads;
mod floating_point;
mod hostile;
mod hpc;
mod inactive_elements;
mod logical_immediates;
mod operands;
mod predicates;
mod spin;
mod system_registers;
mod tagged_addresses;
