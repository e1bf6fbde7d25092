//! Options of commands that make many runs.

use std::path::PathBuf;

use super::output::default_cache;

/// How many runs at a time, and where their counts are kept.
#[derive(clap::Args)]
pub struct BatchArgs {
    /// Runs at a time; default: all of the host's cores.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Folder for the cached counts of runs; default: a folder in the user's cache.
    #[arg(long, value_name = "FOLDER", conflicts_with = "no_cache")]
    cache: Option<PathBuf>,
    /// Simulate all runs again and cache nothing.
    #[arg(long)]
    no_cache: bool,
}

impl BatchArgs {
    /// Returns the number of runs at a time; `None`: as many as the host has cores.
    pub(super) fn jobs(&self) -> Option<usize> {
        self.jobs.map(usize::from)
    }

    /// Returns the folder of the cache, that of the command called `command` by default; `None`: nothing is cached.
    pub(super) fn cache(&self, command: &str) -> Option<PathBuf> {
        if self.no_cache { None } else { self.cache.clone().or_else(|| default_cache(command)) }
    }
}
