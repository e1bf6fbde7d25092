//! The process that executes the program: it gives intervals to others, and takes what they have counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use fxscope_checkpoint::parcel;
use fxscope_sim::{Task, TaskCounts, Timers};

use super::files::{self, Kind, Pulse, host};
use super::{BEAT, LOOK, SpoolError};

/// Has intervals timed by the processes that look at a folder. The calling thread times those that nobody takes.
pub struct Spool {
    /// `None`: no more orders come.
    orders: Option<Sender<Order>>,
    events: Receiver<Event>,
    /// Intervals that others have, and how many they may have.
    given: usize,
    most: usize,
    /// Whether an interval has been wanted back that has not come yet.
    wants_back: bool,
    keeper: Option<JoinHandle<()>>,
}

/// How many intervals wait for each other process: as many as one times while this one times an interval and executes the next, so that nobody
/// waits. They are files, and take no memory of this process.
const WAITING: usize = 3;

/// What the folder's keeper is to do.
enum Order {
    Post(Box<Task>),
    /// Returns an interval that nobody times, now or as soon as there is one.
    GiveBack,
}

/// What happens in the folder.
enum Event {
    Counts(Box<TaskCounts>),
    /// An interval that nobody times, as was wanted.
    Back(Box<Task>),
    /// An interval that could not be posted.
    Refused(Box<Task>),
    Failed(String),
}

impl Spool {
    /// Makes the folder if there is none, and begins to use it, on a thread of its own, which has the access that the calling one has now.
    /// `processes` time intervals at the same time, this one among them; others find [`WAITING`] for each. A process that shows no sign of
    /// life for `lost_after` has died. `notify` is called with what goes wrong without ending the run.
    ///
    /// # Errors
    /// When no other process is to time anything, another run uses the folder, or it cannot be written.
    pub fn open(
        folder: &Path,
        processes: usize,
        lost_after: Duration,
        notify: impl Fn(&str) + Send + 'static,
    ) -> Result<Spool, SpoolError> {
        if processes < 2 {
            return Err(SpoolError::Alone);
        }
        let made = match fs::create_dir(folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            made => made.map(|()| true).map_err(host(folder))?,
        };
        let given = folder;
        let folder = fs::canonicalize(given).map_err(host(given))?;
        // From here on others see the run. Nothing that they do to the folder may end it.
        let run = files::create_run(given)?;
        files::clear(&folder);
        let (orders, ordered) = channel();
        let (happens, events) = channel();
        let mut keeper = Keeper {
            folder: folder.clone(),
            made,
            run,
            lost_after,
            posted: BTreeMap::new(),
            gives_back: false,
            happens,
            notify: Box::new(notify),
            trouble: None,
        };
        let builder = Builder::new().name("fxscope/intervals".to_owned());
        let keeper = builder.spawn(move || keeper.keep(&ordered)).map_err(host(&folder))?;
        let most = (1 + WAITING) * processes.saturating_sub(1);
        Ok(Spool { orders: Some(orders), events, given: 0, most, wants_back: false, keeper: Some(keeper) })
    }

    fn order(&self, order: Order) -> Result<(), String> {
        let sent = self.orders.as_ref().map(|orders| orders.send(order).is_ok());
        if sent == Some(true) { Ok(()) } else { Err(GONE.to_owned()) }
    }

    /// Takes what has happened to an interval, which others no longer have.
    fn take(&mut self, event: Event) -> Result<TaskCounts, String> {
        self.given -= 1;
        match event {
            Event::Counts(counts) => Ok(*counts),
            Event::Back(task) => {
                self.wants_back = false;
                Ok(task.time())
            }
            Event::Refused(task) => Ok(task.time()),
            Event::Failed(why) => Err(why),
        }
    }
}

/// Nobody looks after the folder any more.
const GONE: &str = "the folder with intervals is no longer looked after";

impl Timers for Spool {
    fn give(&mut self, task: Task) -> Result<Option<TaskCounts>, String> {
        if self.given >= self.most {
            return Ok(Some(task.time()));
        }
        self.given += 1;
        self.order(Order::Post(Box::new(task))).map(|()| None)
    }

    fn done(&mut self) -> Result<Option<TaskCounts>, String> {
        let event = self.events.try_recv().ok();
        event.map(|event| self.take(event)).transpose()
    }

    fn rest(&mut self) -> Result<Option<TaskCounts>, String> {
        if self.given == 0 {
            return Ok(None);
        }
        if !self.wants_back {
            self.order(Order::GiveBack)?;
            self.wants_back = true;
        }
        let event = self.events.recv().map_err(|_| GONE.to_owned())?;
        self.take(event).map(Some)
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.orders = None;
        let _ = self.keeper.take().map(JoinHandle::join);
    }
}

/// Looks after the folder.
struct Keeper {
    folder: PathBuf,
    /// Whether the run has made it.
    made: bool,
    /// The file that shows that the run lives.
    run: File,
    lost_after: Duration,
    posted: BTreeMap<usize, Posted>,
    gives_back: bool,
    happens: Sender<Event>,
    notify: Box<dyn Fn(&str) + Send>,
    /// What was last notified.
    trouble: Option<String>,
}

/// An interval in the folder.
struct Posted {
    digest: [u8; 32],
    /// Of who has claimed it.
    pulse: Option<Pulse>,
    /// Since when there is no file of it. There may be none that is seen while one is renamed.
    missing: Option<Instant>,
}

impl Keeper {
    fn keep(&mut self, orders: &Receiver<Order>) {
        let (mut looked, mut beaten) = (Instant::now(), Instant::now());
        loop {
            match orders.recv_timeout(LOOK) {
                Ok(Order::Post(task)) => self.post(task),
                Ok(Order::GiveBack) => self.gives_back = true,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if beaten.elapsed() >= BEAT {
                files::beat(&self.run);
                beaten = Instant::now();
            }
            if looked.elapsed() >= LOOK || self.gives_back {
                self.look();
                looked = Instant::now();
            }
        }
        // A process that sees that the file is gone knows that the run is over.
        let _ = fs::remove_file(self.folder.join(files::RUN));
        files::clear(&self.folder);
        if self.made {
            let _ = fs::remove_dir(&self.folder);
        }
    }

    fn post(&mut self, task: Box<Task>) {
        let number = task.number();
        let path = Kind::Interval.path(&self.folder, number);
        let written = files::interval_file(&task).and_then(|file| files::write(&path, &file).map(|()| file));
        match written {
            Ok(file) => {
                self.posted.insert(number, Posted { digest: parcel::digest(&file), pulse: None, missing: None });
            }
            Err(why) => {
                self.warn(format!("{}: {why}; this process times the interval itself", path.display()));
                self.tell(Event::Refused(task));
            }
        }
    }

    fn look(&mut self) {
        let found = files::list(&self.folder).unwrap_or_else(|why| {
            self.warn(format!("{}: {why}", self.folder.display()));
            BTreeMap::new()
        });
        let of = |kind| found.get(&kind).map_or(&[][..], Vec::as_slice);
        for &number in of(Kind::Failed) {
            self.failed(number);
        }
        for &number in of(Kind::Counts) {
            self.counted(number);
        }
        for &number in of(Kind::Claimed) {
            self.watch(number);
        }
        if self.gives_back {
            of(Kind::Interval).iter().any(|&number| self.give_back(number));
        }
        self.miss(&found.into_values().flatten().collect());
    }

    /// Notes intervals that have no file, unlike those that were `seen`. One that stays so has been removed, and nobody times it.
    fn miss(&mut self, seen: &BTreeSet<usize>) {
        let lost_after = self.lost_after;
        let gone = self.posted.iter_mut().filter_map(|(&number, posted)| {
            if seen.contains(&number) {
                posted.missing = None;
                return None;
            }
            let since = posted.missing.get_or_insert_with(Instant::now);
            (since.elapsed() > lost_after).then_some(number)
        });
        for number in gone.collect::<Vec<_>>() {
            self.forget(number);
            self.tell(Event::Failed(format!(
                "interval {number}: its file has been removed from {}",
                self.folder.display()
            )));
        }
    }

    fn failed(&mut self, number: usize) {
        let path = Kind::Failed.path(&self.folder, number);
        let why = files::read(&path).ok().flatten().unwrap_or_default();
        if self.forget(number).is_some() {
            self.tell(Event::Failed(format!("interval {number}: {}", String::from_utf8_lossy(&why).trim())));
        }
    }

    /// Takes what an interval has counted.
    fn counted(&mut self, number: usize) {
        let path = Kind::Counts.path(&self.folder, number);
        let Some(digest) = self.posted.get(&number).map(|posted| posted.digest) else {
            // It was timed twice, or by a process that has missed the end of another run.
            let _ = fs::remove_file(path);
            return;
        };
        let read = files::read(&path).and_then(|file| match file {
            Some(file) => files::counts_of(&path, &file, &digest),
            None => Ok(None),
        });
        match read {
            Ok(Some(counts)) => {
                self.forget(number);
                self.tell(Event::Counts(Box::new(counts)));
            }
            Ok(None) => _ = fs::remove_file(path),
            Err(why) => {
                self.forget(number);
                self.tell(Event::Failed(why.to_string()));
            }
        }
    }

    /// Lets an interval wait again if who has claimed it has died, or gives it back if one is wanted.
    fn watch(&mut self, number: usize) {
        let path = Kind::Claimed.path(&self.folder, number);
        let Some(posted) = self.posted.get_mut(&number) else {
            let _ = fs::remove_file(path);
            return;
        };
        let quiet = posted.pulse.get_or_insert_with(Pulse::new).look(&path);
        if quiet.is_some_and(|quiet| quiet > self.lost_after) {
            posted.pulse = None;
            let _ = fs::rename(path, Kind::Interval.path(&self.folder, number));
            // At the next look somebody else would have it, who may be lost as well, again and again.
            if self.gives_back {
                self.give_back(number);
            }
        }
    }

    /// Gives an interval back if nobody else claims it first. Returns whether that is so.
    fn give_back(&mut self, number: usize) -> bool {
        let path = Kind::Claimed.path(&self.folder, number);
        let is_ours = self.posted.contains_key(&number);
        if !is_ours || fs::rename(Kind::Interval.path(&self.folder, number), &path).is_err() {
            return false;
        }
        let task = match files::read(&path) {
            Ok(None) => return false,
            Ok(Some(file)) => files::interval_of(&path, &file),
            Err(why) => Err(why),
        };
        self.forget(number);
        self.gives_back = false;
        self.tell(match task {
            Ok(task) => Event::Back(Box::new(task)),
            Err(why) => Event::Failed(why.to_string()),
        });
        true
    }

    /// Removes all of an interval.
    fn forget(&mut self, number: usize) -> Option<Posted> {
        for kind in [Kind::Interval, Kind::Claimed, Kind::Counts, Kind::Failed] {
            let _ = fs::remove_file(kind.path(&self.folder, number));
        }
        self.posted.remove(&number)
    }

    fn tell(&self, event: Event) {
        // Nobody listens at the end of a run that was given up.
        let _ = self.happens.send(event);
    }

    /// Notifies of trouble, unless that was the last.
    fn warn(&mut self, why: String) {
        if self.trouble.as_ref() != Some(&why) {
            (self.notify)(&why);
            self.trouble = Some(why);
        }
    }
}
