//! The host's files and helper programs: input files of a limited size, files that are replaced as a whole, folders that the next run
//! removes when theirs was killed, and programs that must come to an end.

mod helper;
mod input;
mod leftovers;
mod limit;
mod output;
pub mod text;

pub use helper::{Ended, Helper, Signal};
pub use input::{InputError, Refusal, open, read, read_text};
pub use leftovers::{PrivateFolder, private_folder_in, remove_dead_folders};
pub use limit::{file_size_limit, write_error};
pub use output::{Found, OutputFile};
