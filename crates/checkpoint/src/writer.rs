//! Adding snapshots, on a thread of its own: that which simulates a program may have given up its access to the folder.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::folder::Folder;
use crate::manifest::{About, Manifest, PageKey};
use crate::pack::{Item, Known, Packing, Place};
use crate::store::{pages_name, snapshot_name};
use crate::{CHUNK, Error};

/// Chunks that are passed on together: 4 MiB.
const BATCH: usize = 64;

/// The most packs that later snapshots use chunks of.
const PACKS: usize = 32;

/// Messages to the thread.
enum Message {
    Begin,
    Items(Vec<Item>),
    Finish(About),
    Abort,
}

/// A snapshot that has been added.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// Its number.
    pub number: u64,
    /// The bytes that it added to the folder.
    pub bytes: u64,
    /// Why older snapshots could not be removed, if so.
    pub left: Option<String>,
}

/// A thread that adds snapshots to a folder.
#[derive(Debug)]
pub struct Writer {
    /// `None`: it must end.
    to: Option<SyncSender<Message>>,
    from: Receiver<io::Result<Saved>>,
    /// Whether what it has been given for the current snapshot could not be stored.
    failed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(folder: Folder, keep: usize) -> Result<Writer, Error> {
        let path = folder.store.path().display().to_string();
        let numbers = folder.numbers()?;
        let next = numbers.last().map_or(1, |last| last + 1);
        // What cannot be read has no chunks for others.
        let newest = numbers.iter().rev().find_map(|&number| folder.whole(number).ok());
        let known = newest.map_or_else(Known::new, |manifest| usable(&folder, &manifest));
        let (to, messages) = sync_channel(1);
        let (results, from) = sync_channel(1);
        let failed = Arc::new(AtomicBool::new(false));
        let mut work = Work { folder, keep, next, known, failed: Arc::clone(&failed) };
        let run = move || work.run(&messages, &results);
        let thread = std::thread::Builder::new().name("fxscope/snapshots".to_owned()).spawn(run);
        let thread = thread.map_err(|source| Error::Host { path, source })?;
        Ok(Writer { to: Some(to), from, failed, thread: Some(thread) })
    }

    /// Begins a snapshot. What is written to it is the state. It is added by [`Snapshot::finish`], and not at all without.
    ///
    /// # Errors
    /// When the thread has ended.
    pub fn begin(&mut self) -> io::Result<Snapshot<'_>> {
        self.failed.store(false, Ordering::Relaxed);
        self.send(Message::Begin)?;
        Ok(Snapshot { writer: self, state: Vec::with_capacity(CHUNK), items: Vec::new(), finished: false })
    }

    fn send(&self, message: Message) -> io::Result<()> {
        let sent = self.to.as_ref().is_some_and(|to| to.send(message).is_ok());
        if sent { Ok(()) } else { Err(io::Error::other("the thread that writes snapshots has ended")) }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.to = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported, and snapshots that were added are whole.
            let _ = thread.join();
        }
    }
}

/// A snapshot that is being taken.
#[derive(Debug)]
pub struct Snapshot<'w> {
    writer: &'w mut Writer,
    /// The part of the state that is not passed on yet.
    state: Vec<u8>,
    items: Vec<Item>,
    finished: bool,
}

impl Snapshot<'_> {
    /// Adds a page of 1 to [`CHUNK`] bytes.
    ///
    /// # Errors
    /// When it is longer or empty, or what was added before could not be stored.
    pub fn page(&mut self, key: PageKey, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() || bytes.len() > CHUNK {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.add(Item::Page(key, bytes.to_vec()))
    }

    /// Adds the snapshot to the folder, and removes those that are not kept any more.
    ///
    /// # Errors
    /// When it could not be stored: the folder has no part of it.
    pub fn finish(mut self, about: About) -> io::Result<Saved> {
        if !self.state.is_empty() {
            let rest = std::mem::take(&mut self.state);
            self.items.push(Item::State(rest));
        }
        let items = std::mem::take(&mut self.items);
        self.writer.send(Message::Items(items))?;
        self.finished = true;
        self.writer.send(Message::Finish(about))?;
        self.writer.from.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
    }

    fn add(&mut self, item: Item) -> io::Result<()> {
        self.items.push(item);
        if self.items.len() < BATCH {
            return Ok(());
        }
        if self.writer.failed.load(Ordering::Relaxed) {
            return Err(io::Error::other("an earlier part could not be stored"));
        }
        let batch = std::mem::replace(&mut self.items, Vec::with_capacity(BATCH));
        self.writer.send(Message::Items(batch))
    }

    /// Gives up the snapshot. Returns why an earlier part could not be stored, if so.
    pub fn abort(mut self) -> Option<io::Error> {
        self.finished = true;
        self.writer.send(Message::Abort).ok()?;
        self.writer.from.recv().ok()?.err()
    }
}

impl Write for Snapshot<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let part = bytes.len().min(CHUNK - self.state.len());
        self.state.extend_from_slice(&bytes[..part]);
        if self.state.len() == CHUNK {
            let full = std::mem::replace(&mut self.state, Vec::with_capacity(CHUNK));
            self.add(Item::State(full))?;
        }
        Ok(part)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        if !self.finished && self.writer.send(Message::Abort).is_ok() {
            let _ = self.writer.from.recv();
        }
    }
}

/// What the thread works with.
struct Work {
    folder: Folder,
    keep: usize,
    /// The number of the next snapshot.
    next: u64,
    known: Known,
    failed: Arc<AtomicBool>,
}

impl Work {
    /// Follows messages until there are no more.
    fn run(&mut self, messages: &Receiver<Message>, results: &SyncSender<io::Result<Saved>>) {
        while let Ok(message) = messages.recv() {
            if matches!(message, Message::Begin) && results.send(self.snapshot(messages)).is_err() {
                return;
            }
        }
    }

    /// Takes a snapshot to its end. After an error, the rest of it is passed over.
    fn snapshot(&mut self, messages: &Receiver<Message>) -> io::Result<Saved> {
        let taken = self.take(messages);
        if let Err(Stop::Failed(error)) = taken {
            self.failed.store(true, Ordering::Relaxed);
            while !matches!(messages.recv(), Ok(Message::Finish(_) | Message::Abort) | Err(_)) {}
            return Err(error);
        }
        match taken {
            Ok((manifest, bytes)) => self.complete(manifest, bytes),
            Err(_) => Ok(Saved { number: 0, bytes: 0, left: None }),
        }
    }

    /// Stores the chunks.
    fn take(&mut self, messages: &Receiver<Message>) -> Result<(Manifest, u64), Stop> {
        let draft = self.folder.store.draft(&pages_name(self.next))?;
        let mut packing = Packing::new(self.next, draft, &self.known);
        loop {
            match messages.recv() {
                Ok(Message::Items(items)) => packing.add(&items)?,
                Ok(Message::Finish(about)) => {
                    let (draft, mut manifest, bytes) = packing.into_parts();
                    manifest.about = about;
                    if bytes > 0 {
                        draft.keep()?;
                    }
                    return Ok((manifest, bytes));
                }
                Ok(Message::Begin | Message::Abort) | Err(_) => return Err(Stop::Aborted),
            }
        }
    }

    /// Adds the manifest, with which the snapshot exists.
    fn complete(&mut self, manifest: Manifest, bytes: u64) -> io::Result<Saved> {
        let number = self.next;
        let file = manifest.to_file();
        // The names of packs reach the disk before that of the manifest.
        self.folder.store.sync()?;
        let written = self.folder.store.write(&snapshot_name(number), &file);
        if let Err(error) = written {
            // Left alone, the next snapshot replaces it.
            let _ = self.folder.store.remove(&pages_name(number));
            return Err(error);
        }
        self.next += 1;
        let left = self.folder.clean(self.keep).err().map(|error| error.to_string());
        self.known = usable(&self.folder, &manifest);
        Ok(Saved { number, bytes: bytes + file.len() as u64, left })
    }
}

/// Why the chunks of a snapshot are not all stored.
enum Stop {
    Failed(io::Error),
    Aborted,
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Failed(error)
    }
}

/// Returns the chunks of a snapshot that later ones may use: those of packs of which it needs at least half, and of few packs.
fn usable(folder: &Folder, manifest: &Manifest) -> Known {
    let mut live: HashMap<u32, u64> = HashMap::new();
    let mut chunks = HashMap::new();
    for chunk in manifest.chunks() {
        if chunks.insert(chunk.digest, *chunk).is_none() {
            *live.entry(chunk.pack).or_default() += u64::from(chunk.stored);
        }
    }
    let number = |index: u32| manifest.packs[index as usize];
    let half =
        |&(index, live): &(u32, u64)| folder.bytes_of(&pages_name(number(index))).is_ok_and(|bytes| 2 * live >= bytes);
    let mut packs: Vec<(u32, u64)> = live.into_iter().filter(half).collect();
    packs.sort_unstable_by_key(|&(index, live)| (std::cmp::Reverse(live), index));
    packs.truncate(PACKS);
    let kept: Vec<u32> = packs.into_iter().map(|(index, _)| index).collect();
    let usable = chunks.into_values().filter(|chunk| kept.contains(&chunk.pack));
    let place =
        |chunk: crate::manifest::Chunk| Place { pack: number(chunk.pack), offset: chunk.offset, stored: chunk.stored };
    usable.map(|chunk| (chunk.digest, place(chunk))).collect()
}
