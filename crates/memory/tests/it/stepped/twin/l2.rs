//! L2 caches and homes of lines: claims, answers, what leaves.

use fxscope_calendar::Cycle;

use super::Twin;
use crate::stepped::parts::*;

impl Twin {
    pub(super) fn work(&mut self, cmg: usize, work: Work) {
        match work {
            Work::Read(request) => self.read(cmg, request),
            Work::WriteBack { core, line } => {
                let bit = self.cores[core].bit;
                match self.l2[cmg].lines.get_mut(&line) {
                    Some(l) if l.valid => {
                        l.dirty = true;
                        drop_holder(l, core, bit);
                    }
                    _ => self.write_memory(cmg, line),
                }
            }
            Work::Remote(remote) => self.remote(cmg, remote),
        }
    }

    pub(super) fn read(&mut self, cmg: usize, request: Request) {
        self.uses += 1;
        let earliest = self.now + self.cores[request.core].inner;
        if let Some(l) = self.l2[cmg].lines.get_mut(&request.line) {
            l.used = self.uses;
            if l.busy.is_some() {
                l.waiting.push_back((earliest, Work::Read(request)));
            } else {
                self.serve(cmg, request, earliest);
            }
            return;
        }
        self.counts.l2_refills += 1;
        self.evict(cmg, request.line);
        let busy =
            Busy { request: Some(request), remote: None, answers: 1, earliest: 0, order: u64::MAX, shared: false };
        let line = L2Line {
            used: self.uses,
            valid: false,
            dirty: false,
            shared: false,
            holders: 0,
            owner: None,
            busy: Some(busy),
            waiting: Default::default(),
        };
        self.l2[cmg].lines.insert(request.line, line);
        self.ask_home(cmg, request, self.n.miss_detect);
    }

    pub(super) fn ask_home(&mut self, cmg: usize, request: Request, after: Cycle) {
        let way = self.n.hop * u64::from(self.home(request.line) != cmg);
        self.at(self.now + after + way, Event::AtHome { request });
    }

    pub(super) fn home(&self, line: u64) -> usize {
        (line / self.n.node_lines) as usize
    }

    /// A request for a line that is there and not busy.
    pub(super) fn serve(&mut self, cmg: usize, request: Request, earliest: Cycle) {
        let bit = self.cores[request.core].bit;
        let l = self.l2[cmg].lines.get_mut(&request.line).expect("there");
        let others = l.holders & !bit;
        let asks_cores = if request.write { others } else { l.owner.map_or(0, |_| others) };
        let asks_home = request.write && l.shared;
        if asks_cores == 0 && !asks_home {
            return self.grant(cmg, request, earliest);
        }
        let answers = asks_cores.count_ones() as usize + usize::from(asks_home);
        let (order, shared) = (if asks_home { u64::MAX } else { 0 }, false);
        l.busy = Some(Busy { request: Some(request), remote: None, answers, earliest, order, shared });
        l.owner = None;
        if request.write {
            l.holders &= bit;
        }
        let claim = Claim { line: request.line, keeps: !request.write, evicted: false };
        self.claim(cmg, asks_cores, claim);
        if asks_home {
            self.ask_home(cmg, request, 0);
        }
    }

    pub(super) fn claim(&mut self, cmg: usize, bits: u64, claim: Claim) {
        for core in 0..self.cores.len() {
            if self.cores[core].cmg == cmg && self.cores[core].bit & bits != 0 {
                self.at(self.now + self.n.request, Event::ToCore { core, claim });
            }
        }
    }

    /// Nothing stands against a request any more: the answer leaves at `earliest`.
    pub(super) fn grant(&mut self, cmg: usize, request: Request, earliest: Cycle) {
        let Request { core, line, write, upgrade } = request;
        let bit = self.cores[core].bit;
        let l = self.l2[cmg].lines.get_mut(&line).expect("there");
        let data = !(upgrade && l.holders & bit != 0);
        let state = if write {
            State::Modified
        } else if l.shared || l.holders & !bit != 0 {
            State::Shared
        } else {
            State::Exclusive
        };
        l.holders |= bit;
        l.owner = (state != State::Shared).then_some(core);
        if write {
            l.shared = false;
        }
        if let Some(m) = self.cores[core].move_ins.iter_mut().find(|m| m.line == line) {
            m.granted = true;
        }
        self.at(earliest, Event::Leaves { request, state, data });
    }

    /// Room for a line: the one used longest ago leaves.
    pub(super) fn evict(&mut self, cmg: usize, line: u64) {
        let set = self.n.l2_set(line);
        let there = self.l2[cmg].lines.iter().filter(|(other, _)| self.n.l2_set(**other) == set);
        if there.clone().count() < self.n.l2_ways {
            return;
        }
        let oldest = there.filter(|(_, l)| l.busy.is_none()).min_by_key(|(_, l)| l.used).map(|(&line, _)| line);
        let Some(oldest) = oldest else { return };
        let l = self.l2[cmg].lines.remove(&oldest).expect("there");
        let home = self.home(oldest);
        *self.l2[home].having.entry(oldest).or_default() &= !(1 << cmg);
        if l.holders == 0 {
            if l.dirty {
                self.write_memory(cmg, oldest);
            }
            return;
        }
        self.l2[cmg].evicted.push((oldest, l.holders.count_ones() as usize, l.dirty));
        self.claim(cmg, l.holders, Claim { line: oldest, keeps: false, evicted: true });
    }

    pub(super) fn write_memory(&mut self, cmg: usize, line: u64) {
        self.counts.l2_write_backs += 1;
        let home = self.home(line);
        let t = if home == cmg { self.now } else { self.cross(cmg, self.now) };
        self.at(t, Event::WriteMemory { line });
    }

    /// A line goes from one of the two CMGs to the other from `t` on, because `cmg` reads or writes it; when it is there.
    pub(super) fn cross(&mut self, cmg: usize, t: Cycle) -> Cycle {
        let free = &mut self.ports_free[cmg];
        let start = free.max(t as f64);
        *free = start + self.n.port;
        start.ceil() as Cycle + self.n.hop
    }

    /// A core has answered a claim.
    pub(super) fn answered(&mut self, c: usize, claim: Claim, dirty: bool) {
        let cmg = self.cores[c].cmg;
        if claim.evicted {
            let place = self.l2[cmg].evicted.iter().position(|e| e.0 == claim.line).expect("leaving");
            let e = &mut self.l2[cmg].evicted[place];
            (e.1, e.2) = (e.1 - 1, e.2 || dirty);
            if e.1 == 0 {
                let (line, _, dirty) = self.l2[cmg].evicted.remove(place);
                if dirty {
                    self.write_memory(cmg, line);
                }
            }
            return;
        }
        if let Some(l) = self.l2[cmg].lines.get_mut(&claim.line) {
            l.dirty |= dirty;
        }
        self.answer(cmg, claim.line, false);
    }

    /// One of the answers that a busy line waits for.
    pub(super) fn answer(&mut self, cmg: usize, line: u64, shared: bool) {
        let Some(l) = self.l2[cmg].lines.get_mut(&line) else { return };
        let Some(busy) = l.busy.as_mut() else { return };
        busy.answers -= 1;
        busy.shared |= shared;
        if busy.answers > 0 {
            return;
        }
        let busy = l.busy.take().expect("busy");
        if let Some(remote) = busy.remote {
            return self.yield_line(cmg, remote, busy.earliest);
        }
        if !l.valid || busy.shared {
            l.shared = busy.shared;
        }
        l.valid = true;
        let request = busy.request.expect("a request");
        self.grant(cmg, request, busy.earliest.max(self.now));
        self.wake(cmg, line);
    }

    /// Those that waited for a line that is not busy any more.
    pub(super) fn wake(&mut self, cmg: usize, line: u64) {
        while let Some(l) = self.l2[cmg].lines.get_mut(&line)
            && l.busy.is_none()
            && let Some((earliest, work)) = l.waiting.pop_front()
        {
            match work {
                Work::Read(request) => self.serve(cmg, request, earliest.max(self.now)),
                Work::Remote(remote) => self.remote(cmg, remote),
                Work::WriteBack { .. } => {}
            }
        }
    }

    // ---- between CMGs --------------------------------------------------------------------------------------------

    /// A request at the home of its line, which knows the CMGs that have it.
    pub(super) fn at_home(&mut self, request: Request) {
        let Request { core, line, write, .. } = request;
        let (cmg, home) = (self.cores[core].cmg, self.home(line));
        self.uses += 1;
        let order = self.uses;
        let having = self.l2[home].having.entry(line).or_default();
        let stays = *having >> cmg & 1 == 1;
        let others = *having & !(1 << cmg);
        *having = if write { 1 << cmg } else { *having | 1 << cmg };
        let l = self.l2[cmg].lines.get_mut(&line).expect("waits");
        let busy = l.busy.as_mut().expect("waits");
        busy.order = order;
        if stays {
            // Only the right to write was asked for: copies are given up, the home itself answers.
            busy.answers += others.count_ones() as usize;
            let way = self.n.hop * u64::from(home != cmg);
            self.at(self.now + way, Event::Answer { request, shared: false });
        } else if others == 0 {
            return self.at(self.now, Event::ReadMemory { request });
        }
        let source = if others >> home & 1 == 1 { home } else { others.trailing_zeros() as usize };
        for other in (0..self.l2.len()).filter(|other| others >> other & 1 == 1) {
            let remote = Remote { request, keeps: !write, supplies: !stays && other == source, order };
            let work = Work::Remote(remote);
            let way = self.n.hop * u64::from(home != other);
            self.at(self.now + way, Event::ToBank { cmg: other, work });
        }
    }

    /// Another CMG claims a line.
    pub(super) fn remote(&mut self, cmg: usize, remote: Remote) {
        let Remote { request, keeps, supplies, order } = remote;
        let earliest = self.now + self.cores[request.core].inner;
        let Some(l) = self.l2[cmg].lines.get_mut(&request.line) else {
            return self.refuse(cmg, request, supplies);
        };
        let asks = if keeps && l.owner.is_none() { 0 } else { l.holders };
        match l.busy.as_mut() {
            Some(busy) if busy.order < order => l.waiting.push_back((self.now, Work::Remote(remote))),
            Some(_) if !l.valid => self.refuse(cmg, request, supplies),
            Some(_) => {
                // Its own request comes to the home later: it loses the line, and fetches it again.
                l.valid = false;
                self.counts.l2_refills += 1;
                let (holders, dirty) = (std::mem::take(&mut l.holders), l.dirty);
                assert!(!keeps && !dirty, "shared lines are clean");
                self.claim(cmg, holders, Claim { line: request.line, keeps: false, evicted: true });
                self.l2[cmg].evicted.push((request.line, holders.count_ones() as usize, false));
                if holders == 0 {
                    self.l2[cmg].evicted.pop();
                }
                let answer = Event::Supply { request, from: cmg, shared: false };
                let there = 2 * self.n.request + self.n.out_clean;
                let event = if supplies { answer } else { Event::Answer { request, shared: false } };
                let way = if supplies { 0 } else { self.n.hop };
                self.at(self.now + there + way, event);
            }
            None => {
                let answers = asks.count_ones() as usize;
                l.owner = None;
                if answers == 0 {
                    return self.yield_line(cmg, remote, earliest);
                }
                l.busy = Some(Busy { request: None, remote: Some(remote), answers, earliest, order: 0, shared: false });
                self.claim(cmg, asks, Claim { line: request.line, keeps, evicted: false });
            }
        }
    }

    /// This CMG does not have the line any more.
    pub(super) fn refuse(&mut self, cmg: usize, request: Request, supplies: bool) {
        let way = self.n.hop * u64::from(self.home(request.line) != cmg);
        if supplies {
            self.at(self.now + way, Event::ReadMemory { request });
        } else {
            self.at(self.now + self.n.hop, Event::Answer { request, shared: false });
        }
    }

    /// All cores of this CMG have given up a line that another one claims.
    pub(super) fn yield_line(&mut self, cmg: usize, remote: Remote, earliest: Cycle) {
        let Remote { request, keeps, supplies, .. } = remote;
        let line = request.line;
        let l = self.l2[cmg].lines.get_mut(&line).expect("there");
        let dirty = std::mem::take(&mut l.dirty);
        l.shared |= keeps;
        let t = if supplies { earliest.max(self.now) } else { self.now + self.n.hop };
        let event = if supplies {
            Event::Supply { request, from: cmg, shared: keeps }
        } else {
            Event::Answer { request, shared: keeps }
        };
        self.at(t, event);
        if keeps && dirty {
            self.at(t, Event::Clean { cmg, line });
        }
        if keeps {
            return self.wake(cmg, line);
        }
        // Those that wait find that it has gone.
        let gone = self.l2[cmg].lines.remove(&line).expect("there");
        for (_, work) in gone.waiting {
            self.work(cmg, work);
        }
    }
}

/// A core has given up its copy.
pub(super) fn drop_holder(l: &mut L2Line, core: usize, bit: u64) {
    l.holders &= !bit;
    if l.owner == Some(core) {
        l.owner = None;
    }
}
