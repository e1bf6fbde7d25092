//! The host's files and helper programs: input files of limited size, files that are replaced atomically, temporary folders that
//! the next run removes after a crash, and programs with a time limit.

mod helper;
mod input;
mod leftovers;
mod limit;
mod output;
mod peek;
pub mod text;

pub use helper::{Ended, Helper, Signal};
pub use input::{InputError, Refusal, open, read, read_text};
pub use leftovers::{PrivateFolder, private_folder_in, remove_dead_folders};
pub use limit::{file_size_limit, write_error};
pub use output::{Found, OutputFile};
pub use peek::set_peek_offset;
