//! Host threads that time intervals, of which the one that executes the program is one.

use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Scope};

use super::Timers;
use super::task::{Task, TaskCounts};

/// The workers of a run.
pub(super) struct Workers {
    /// Those who give work and who return it, until no more comes.
    open: Option<(SyncSender<Task>, Sender<TaskCounts>)>,
    waiting: Waiting,
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
        let waiting = Waiting(Arc::new(Mutex::new(waiting)));
        for worker in 0..number {
            let (waiting, finished) = (waiting.clone(), finished.clone());
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
        Ok(Workers { open: Some((given, finished)), waiting, done })
    }
}

impl Timers for Workers {
    /// This thread times an interval if as many wait as may.
    fn give(&mut self, task: Task) -> Result<Option<TaskCounts>, String> {
        let Some((given, _)) = &self.open else { return Ok(Some(task.time())) };
        match given.try_send(task) {
            Ok(()) => Ok(None),
            Err(TrySendError::Full(task) | TrySendError::Disconnected(task)) => Ok(Some(task.time())),
        }
    }

    fn done(&mut self) -> Result<Option<TaskCounts>, String> {
        Ok(self.done.try_recv().ok())
    }

    fn rest(&mut self) -> Result<Option<TaskCounts>, String> {
        self.open = None;
        Ok(self.waiting.next().map(Task::time).or_else(|| self.done.recv().ok()))
    }
}
