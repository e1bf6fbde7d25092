//! A memory system that steps every cycle: cores, L2 caches and homes send each other messages, and wait for answers.
//! It shares no code with the model, and knows nothing before it has come.

mod l2;

use std::collections::BTreeMap;

use fxscope_calendar::Cycle;
use fxscope_machine::Spec;

use crate::stepped::parts::*;
use l2::drop_holder;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub l1_refills: u64,
    pub l1_write_backs: u64,
    pub l2_refills: u64,
    pub l2_write_backs: u64,
    /// Lines that a memory sends to a core of its own CMG.
    pub reads: u64,
}

pub struct Twin {
    n: Numbers,
    now: Cycle,
    uses: u64,
    window: usize,
    pub cores: Vec<Core>,
    l2: Vec<L2>,
    /// For each CMG, when its port is free for the next line that it reads or writes over the ring. The port of the other
    /// one, which serves it, has the same lines.
    ports_free: [f64; 2],
    events: BTreeMap<Cycle, Vec<Event>>,
    pub counts: Counts,
}

impl Twin {
    /// Cores at `(cmg, position)` with their streams, of which `window` accesses are in flight at most.
    pub fn new(spec: &Spec, seats: &[(usize, usize)], streams: &[Vec<Access>], window: usize) -> Twin {
        let n = Numbers::new(spec);
        let last = u64::from(spec.topology.cores_per_cmg) - 1;
        let by_position = |near: Cycle, far: Cycle, at: usize| near + (far - near) * at as u64 / last;
        // What of a documented load-to-use is the same for all.
        let ways = 2 * n.request + n.fill + n.move_in + spec.load_store.load_integer;
        let core = |(&(cmg, position), stream): (&(usize, usize), &Vec<Access>)| Core {
            cmg,
            bit: 1 << position,
            stream: stream.clone(),
            next: 0,
            started: 0,
            done: vec![None; stream.len()],
            sets: (0..n.l1_sets).map(|_| Vec::new()).collect(),
            move_ins: Vec::new(),
            stalled: Default::default(),
            requests: Default::default(),
            fills: Default::default(),
            writeback_buffers: Default::default(),
            words: 0,
            buffers_used: 0,
            leaving: Default::default(),
            bus_free: 0,
            inner: by_position(spec.l2_timing.hit_nearest, spec.l2_timing.hit_farthest, position) - ways,
            memory: by_position(spec.memory.latency_nearest, spec.memory.latency_farthest, position)
                - ways
                - n.miss_detect,
        };
        let cores = seats.iter().zip(streams).map(core).collect();
        let l2 = || L2 { banks: vec![Default::default(); spec.l2_timing.banks as usize], ..L2::default() };
        let l2 = (0..spec.topology.cmgs).map(|_| l2()).collect();
        let (events, counts) = (BTreeMap::new(), Counts::default());
        Twin { n, now: 0, uses: 0, window, cores, l2, ports_free: [0.0; 2], events, counts }
    }

    /// Runs to the end; the time of each core's last access.
    pub fn run(&mut self) -> Vec<Cycle> {
        while !self.idle() {
            self.step();
        }
        self.cores.iter().map(|core| core.done.iter().map(|t| t.expect("done")).max().unwrap_or(0)).collect()
    }

    fn idle(&self) -> bool {
        let core =
            |c: &Core| c.done.iter().all(Option::is_some) && c.writeback_buffers.is_empty() && c.leaving.is_empty();
        let l2 = |l2: &L2| l2.banks.iter().all(|bank| bank.is_empty()) && l2.channel.is_empty();
        self.events.is_empty() && self.cores.iter().all(core) && self.l2.iter().all(l2)
    }

    fn step(&mut self) {
        while let Some(events) = self.events.remove(&self.now) {
            events.into_iter().for_each(|event| self.happen(event));
        }
        for core in 0..self.cores.len() {
            self.retry(core);
            self.start(core);
            self.send(core);
            self.bus(core);
        }
        for cmg in 0..self.l2.len() {
            for bank in 0..self.l2[cmg].banks.len() {
                if let Some(work) = self.l2[cmg].banks[bank].pop_front() {
                    self.work(cmg, work);
                }
            }
            self.channel(cmg);
        }
        // What takes no time happens in the same cycle.
        while let Some(events) = self.events.remove(&self.now) {
            events.into_iter().for_each(|event| self.happen(event));
        }
        self.now += 1;
        assert!(self.now < 10_000_000, "no progress");
    }

    fn at(&mut self, t: Cycle, event: Event) {
        self.events.entry(t.max(self.now)).or_default().push(event);
    }

    // ---- cores ---------------------------------------------------------------------------------------------------

    fn start(&mut self, c: usize) {
        let core = &self.cores[c];
        let i = core.next;
        let Some(access) = core.stream.get(i) else { return };
        let free = i < self.window || core.done[i - self.window].is_some_and(|t| t <= self.now);
        if self.now < core.started + access.gap || !free {
            return;
        }
        self.cores[c].next += 1;
        self.cores[c].started = self.now;
        if !self.attempt(c, i) {
            self.cores[c].stalled.push_back(i);
        }
    }

    fn retry(&mut self, c: usize) {
        while let Some(&i) = self.cores[c].stalled.front() {
            if !self.attempt(c, i) {
                return;
            }
            self.cores[c].stalled.pop_front();
        }
    }

    /// Access `i` of a core looks into L1D. Returns whether it is done or waits for a line.
    fn attempt(&mut self, c: usize, i: usize) -> bool {
        let (now, n) = (self.now, &self.n);
        self.uses += 1;
        let core = &mut self.cores[c];
        let Access { line, write, .. } = core.stream[i];
        let set = (line % n.l1_sets) as usize;
        let found = core.sets[set].iter_mut().find(|l| l.line == line);
        let state = found.map(|l| {
            l.used = self.uses;
            if write && l.state == Some(State::Exclusive) {
                l.state = Some(State::Modified);
            }
            l.state
        });
        if let Some(Some(state)) = state
            && (!write || state != State::Shared)
        {
            core.done[i] = Some(now);
            return true;
        }
        if let Some(waiting) = core.move_ins.iter_mut().find(|m| m.line == line) {
            waiting.waiting.push(i);
            return true;
        }
        if core.move_ins.len() == n.move_ins {
            return false;
        }
        let upgrade = state.is_some();
        let room = upgrade
            || match self.make_room(c, set, line) {
                Some(room) => room,
                None => return false,
            };
        let (used, core) = (self.uses, &mut self.cores[c]);
        if !upgrade {
            self.counts.l1_refills += 1;
            core.sets[set].push(L1Line { line, state: None, used });
        }
        let (waiting, come, claims) = (vec![i], None, Vec::new());
        core.move_ins.push(MoveIn { line, waiting, upgrade, granted: false, room, come, claims });
        core.requests.push_back(Request { core: c, line, write, upgrade });
        true
    }

    /// A place in a set of L1D: whether it is free at once; none if all lines are on their way.
    fn make_room(&mut self, c: usize, set: usize, successor: u64) -> Option<bool> {
        let core = &mut self.cores[c];
        if core.sets[set].len() < self.n.l1_ways {
            return Some(true);
        }
        let upgrades: Vec<u64> = core.move_ins.iter().map(|m| m.line).collect();
        let candidates = core.sets[set].iter().enumerate();
        let movable = candidates.filter(|(_, l)| l.state.is_some() && !upgrades.contains(&l.line));
        let (oldest, _) = movable.min_by_key(|(_, l)| l.used)?;
        let victim = core.sets[set].remove(oldest);
        if victim.state == Some(State::Modified) {
            core.leaving.push_back((victim.line, successor));
            self.move_out(c);
            return Some(false);
        }
        core.words += 1;
        self.at(self.now + self.n.request, Event::CleanLeft { core: c, line: victim.line });
        Some(true)
    }

    /// Dirty lines go into free move-out buffers.
    fn move_out(&mut self, c: usize) {
        while self.cores[c].buffers_used < self.n.writeback_buffers {
            let Some((line, successor)) = self.cores[c].leaving.pop_front() else { return };
            self.cores[c].buffers_used += 1;
            self.counts.l1_write_backs += 1;
            self.at(self.now + self.n.out_dirty - 1, Event::Out { core: c, line, successor });
        }
    }

    fn send(&mut self, c: usize) {
        if let Some(request) = self.cores[c].requests.pop_front() {
            let event = Event::ToBank { cmg: self.cores[c].cmg, work: Work::Read(request) };
            self.at(self.now + self.n.request, event);
        }
    }

    /// One line at a time goes over the bus, whichever way.
    fn bus(&mut self, c: usize) {
        let (now, core) = (self.now, &mut self.cores[c]);
        if core.bus_free > now {
            return;
        }
        let ready = |t: Option<&(Cycle, u64)>| t.is_some_and(|t| t.0 <= now);
        let fill = core.fills.iter().position(|f| f.0 <= now);
        if let Some(fill) = fill {
            let (_, line, state) = core.fills.remove(fill).expect("there");
            core.bus_free = now + self.n.fill;
            self.at(now + self.n.fill, Event::Filled { core: c, line, state });
        } else if core.words > 0 {
            core.words -= 1;
            core.bus_free = now + self.n.word;
        } else if ready(core.writeback_buffers.front()) {
            let (_, line) = core.writeback_buffers.pop_front().expect("there");
            core.bus_free = now + self.n.to_l2;
            let there = now + self.n.request;
            let event = Event::ToBank { cmg: core.cmg, work: Work::WriteBack { core: c, line } };
            self.at(there, event);
            self.at(there + self.n.to_l2, Event::BufferFree { core: c });
        }
    }

    /// A line has come to a core, and it has room.
    fn filled(&mut self, c: usize, line: u64, state: State) {
        let core = &mut self.cores[c];
        let place = core.move_ins.iter().position(|m| m.line == line).expect("asked for");
        if !core.move_ins[place].room {
            core.move_ins[place].come = Some(state);
            return;
        }
        let m = core.move_ins.remove(place);
        let set = (line % self.n.l1_sets) as usize;
        let held = core.sets[set].iter_mut().find(|l| l.line == line).expect("its place");
        held.state = Some(state);
        // Accesses that waited look replay_period: a store may find that it must ask.
        for i in m.waiting {
            if !self.attempt(c, i) {
                self.cores[c].stalled.push_back(i);
            }
        }
        for claim in m.claims {
            self.at(self.now + if m.upgrade { 1 } else { self.n.move_in }, Event::ToCore { core: c, claim });
        }
    }

    /// A core hears that others want a line.
    fn claimed(&mut self, c: usize, claim: Claim) {
        let core = &mut self.cores[c];
        if let Some(m) = core.move_ins.iter_mut().find(|m| m.line == claim.line && m.granted) {
            m.claims.push(claim);
            return;
        }
        let set = (claim.line % self.n.l1_sets) as usize;
        let held = core.sets[set].iter().position(|l| l.line == claim.line && l.state.is_some());
        let state = held.and_then(|i| core.sets[set][i].state);
        if let Some(i) = held {
            if claim.keeps {
                core.sets[set][i].state = Some(State::Shared);
            } else if let Some(m) = core.move_ins.iter_mut().find(|m| m.line == claim.line) {
                // The right to write will come with the line.
                m.upgrade = false;
                self.counts.l1_refills += 1;
                core.sets[set][i].state = None;
            } else {
                core.sets[set].remove(i);
            }
        }
        let dirty = state == Some(State::Modified);
        self.counts.l1_write_backs += u64::from(dirty);
        let out = match state {
            Some(State::Modified | State::Exclusive) => self.n.out_dirty + self.n.to_l2,
            _ => self.n.out_clean,
        };
        self.at(self.now + out + self.n.request, Event::FromCore { core: c, claim, dirty });
    }

    // ---- memory --------------------------------------------------------------------------------------------------

    fn channel(&mut self, cmg: usize) {
        let now = self.now as f64;
        if self.l2[cmg].channel_free >= now + 1.0 {
            return;
        }
        let Some(work) = self.l2[cmg].channel.pop_front() else { return };
        let takes = if work.is_some() { self.n.read } else { self.n.write };
        self.l2[cmg].channel_free = self.l2[cmg].channel_free.max(now) + takes;
        if let Some(request) = work {
            self.counts.reads += u64::from(self.cores[request.core].cmg == cmg);
            let ready = self.now + self.cores[request.core].memory;
            self.at(ready, Event::Supply { request, from: cmg, shared: false });
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::ToBank { cmg, work } => {
                let line = match work {
                    Work::Read(request) | Work::Remote(Remote { request, .. }) => request.line,
                    Work::WriteBack { line, .. } => line,
                };
                let bank = line as usize % self.l2[cmg].banks.len();
                self.l2[cmg].banks[bank].push_back(work);
            }
            Event::CleanLeft { core, line } => {
                let (cmg, bit) = (self.cores[core].cmg, self.cores[core].bit);
                let back = self.cores[core].move_ins.iter().any(|m| m.line == line && m.granted);
                if let Some(l) = self.l2[cmg].lines.get_mut(&line)
                    && !back
                {
                    drop_holder(l, core, bit);
                }
            }
            Event::ToCore { core, claim } => self.claimed(core, claim),
            Event::FromCore { core, claim, dirty } => self.answered(core, claim, dirty),
            Event::Leaves { request: Request { core, line, .. }, state, data } => {
                let t = self.now + self.n.request;
                if data {
                    self.cores[core].fills.push_back((t, line, state));
                } else {
                    self.at(t, Event::Allowed { core, line });
                }
            }
            Event::Filled { core, line, state } => self.filled(core, line, state),
            Event::Allowed { core, line } => self.filled(core, line, State::Modified),
            Event::BufferFree { core } => {
                self.cores[core].buffers_used -= 1;
                self.move_out(core);
            }
            Event::Out { core, line, successor } => {
                self.cores[core].writeback_buffers.push_back((self.now, line));
                let m = self.cores[core].move_ins.iter_mut().find(|m| m.line == successor);
                if let Some(m) = m {
                    m.room = true;
                    if let Some(state) = m.come {
                        self.filled(core, successor, state);
                    }
                }
            }
            Event::AtHome { request } => self.at_home(request),
            Event::ReadMemory { request } => {
                let home = self.home(request.line);
                self.l2[home].channel.push_back(Some(request));
            }
            Event::WriteMemory { line } => {
                let home = self.home(line);
                self.l2[home].channel.push_back(None);
            }
            Event::Clean { cmg, line } => self.write_memory(cmg, line),
            Event::Answer { request, shared } => self.answer(self.cores[request.core].cmg, request.line, shared),
            Event::Supply { request, from, shared } => {
                let cmg = self.cores[request.core].cmg;
                let t = if from == cmg { self.now } else { self.cross(cmg, self.now) };
                if t == self.now {
                    self.answer(cmg, request.line, shared);
                } else {
                    self.at(t, Event::Answer { request, shared });
                }
            }
        }
    }
}
