//! Host threads that time intervals, of which the one that executes the program is one.

use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Scope};

use super::task::{Task, TaskCounts};

/// The workers of a run.
pub(super) struct Workers {
    given: SyncSender<Task>,
    waiting: Waiting,
    finished: Sender<TaskCounts>,
    done: Receiver<TaskCounts>,
}

/// Intervals that no thread has begun with.
#[derive(Clone)]
struct Waiting(Arc<Mutex<Receiver<Task>>>);

impl Waiting {
    /// Waits for an interval. `None`: there are no more.
    fn next(&self) -> Option<Task> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
    }
}

impl Workers {
    /// Starts `number` workers beside the thread that gives them work. As many intervals wait at most.
    ///
    /// # Errors
    /// When the host cannot start them.
    pub(super) fn start<'s>(scope: &'s Scope<'s, '_>, number: usize) -> std::io::Result<Workers> {
        let (given, waiting) = sync_channel(number);
        let (finished, done) = channel();
        let workers = Workers { given, waiting: Waiting(Arc::new(Mutex::new(waiting))), finished, done };
        for worker in 0..number {
            let (waiting, finished) = (workers.waiting.clone(), workers.finished.clone());
            let work = move || {
                while let Some(task) = waiting.next() {
                    // Nobody takes the counts of a run that has been given up.
                    if finished.send(task.time()).is_err() {
                        return;
                    }
                }
            };
            Builder::new().name(format!("fxscope/interval worker {worker}")).spawn_scoped(scope, work)?;
        }
        Ok(workers)
    }

    /// Has an interval timed: by this thread, if as many wait as may.
    pub(super) fn give(&self, task: Task) -> Option<TaskCounts> {
        match self.given.try_send(task) {
            Ok(()) => None,
            Err(TrySendError::Full(task) | TrySendError::Disconnected(task)) => Some(task.time()),
        }
    }

    /// Returns an interval that has been timed, if there is one.
    pub(super) fn done(&self) -> Option<TaskCounts> {
        self.done.try_recv().ok()
    }

    /// No more intervals come: helps with those that wait, and returns all that are timed from now on.
    pub(super) fn finish(self) -> impl Iterator<Item = TaskCounts> {
        let Workers { given, waiting, finished, done } = self;
        drop(given);
        let own = std::iter::from_fn(move || waiting.next().map(Task::time));
        drop(finished);
        own.chain(done)
    }
}
