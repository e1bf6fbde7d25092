//! Options of commands that make many runs.

use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::lab::tasks::{self, Task};
use fxscope::lab::{self, Cache};
use fxscope::report::render::html;

use super::form::{Answer, Form};
use super::output::default_cache;
use super::status::FOUND;
use super::{Failure, say};

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

/// Single runs, which a cluster makes one by one.
#[derive(clap::Args)]
pub struct TaskArgs {
    /// List the runs that are needed, and which are cached already; make none.
    #[arg(long, conflicts_with = "no_cache")]
    dry_run: bool,
    /// Make only the run with this result, as --dry-run lists it, cache what it counts, and show nothing.
    #[arg(long, value_name = "RESULT", conflicts_with_all = ["no_cache", "dry_run"])]
    only: Option<String>,
}

impl TaskArgs {
    /// Lists the runs, or makes one, which returns why it failed, if so; `None`: neither is asked for.
    pub(super) fn done(
        &self,
        cache: &Cache,
        form: &Form,
        list: impl FnOnce() -> Vec<Task>,
        make: impl FnOnce(&str) -> Result<Option<String>, lab::Error>,
    ) -> Result<Option<ExitCode>, Failure> {
        if let Some(result) = &self.only {
            return Ok(Some(match make(result)? {
                None => ExitCode::SUCCESS,
                Some(why) => {
                    say(&why);
                    ExitCode::from(FOUND)
                }
            }));
        }
        if !self.dry_run {
            return Ok(None);
        }
        let list = list();
        let document = tasks::document(&list);
        form.check()?.write(&Answer {
            text: std::slice::from_ref(&document),
            html: &|| html::experiment(&document, &[]),
            json: &|| tasks::list_json(&list, cache),
        })?;
        Ok(Some(ExitCode::SUCCESS))
    }
}
