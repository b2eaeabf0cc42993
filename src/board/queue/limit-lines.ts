/**
 * The jobs that wait for limits, and the slots and tokens that are left as far as this process knows.
 *
 * Jobs of a queue that name the same limited keys are a **group**, in claim order: all of them may start, or none. A group whose keys all have room is
 * **open**, and a caller chooses from its head. A group with a key that has no room is **parked** under that key, and costs nothing until
 * there is room again: a hundred thousand jobs of one key are one group, whose jobs are not visited.
 *
 *     open ──a key was found without room──→ parked under the key ──the key has room again──→ open
 *
 * A key has room again when a claim of it ends, or at a known time: a token is due, or a hold ends. Then the first groups in claim order
 * are opened, as many as there is room for. More groups are opened only if a caller accepts none of their jobs. A group that also waits for
 * another key is parked under that key, and takes none of the room.
 *
 * If a job costs more tokens than are free, the key keeps its tokens for it, and the jobs behind it get none, also jobs of other groups:
 * otherwise it would never start.
 *
 * Only the transaction of a claim decides. If others have taken slots or tokens meanwhile, a claim is refused, and nothing else happens.
 */
import { compareNumbers } from '../../core/time.ts'
import { type ClaimOrderKey, compareClaimOrder } from '../model/claim-order.ts'
import type { QueuePlace } from '../model/entry.ts'
import { isStopped } from '../model/limit-stops.ts'
import { isSameRate, type LimitRule, type LimitRules, toClaimCosts } from '../model/limits.ts'
import { DEFAULT_QUEUE, type QueueFilter, queueOf } from '../model/queues.ts'
import { type FairTurns, GroupList, type KeyLine, type LimitGroup } from './limit-groups.ts'
import { blockedUntil, type ChosenJobs, costOf, findBlocked, isUsedUp, roomOf } from './limit-room.ts'
import { LimitSearch } from './limit-search.ts'
import { LimitedKeys } from './limited-keys.ts'
import { SortedList } from './sorted.ts'

/** The pause before a key is tried again after a refused claim, if this process does not know when the key has room. */
const REFUSED_PAUSE_MS = 50

/** The key that keeps a job from starting. */
export interface LimitBlocker {
  readonly key: string
  readonly rule: LimitRule
  /** The number of jobs of the key that run, as far as this process knows. */
  readonly used: number
  /** The time from which the key has room, in milliseconds since 1970; absent if it is not known. */
  readonly until?: number
}

/** A key that keeps its tokens for a job that costs more tokens than are free. */
export interface KeptTokens extends LimitBlocker {
  /** The job for which the tokens are kept. */
  readonly first: QueuePlace
}

const NO_RULES: LimitRules = { isEmpty: true, isFair: false, ruleOf: () => undefined }

export class LimitLines {
  #rules = NO_RULES
  readonly #keys = new Map<string, KeyLine>()
  readonly #groups = new Map<string, LimitGroup>()
  /** The group of each job that is in one. */
  readonly #groupOf = new Map<QueuePlace, LimitGroup>()
  readonly #open = new GroupList()
  /** Keys that may have room again, with groups parked under them. */
  readonly #awake = new Set<KeyLine>()
  /** The keys with a known time at which they have room again, by this time. */
  readonly #waking = new SortedList<KeyLine>(
    (a, b) => compareNumbers(a.wakeAt, b.wakeAt) || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0),
  )
  /** The keys for which jobs have begun to wait. */
  readonly limited = new LimitedKeys()
  /** Keys with groups that were parked because of chosen jobs: only the outcome of their claims shows whether jobs have begun to wait. */
  readonly #unreported = new Set<KeyLine>()
  /** The number of starts of jobs so far. */
  #starts = 0
  /** The jobs that are counted as reserved. */
  readonly #reserved = new Set<QueuePlace>()

  get isEmpty(): boolean {
    return this.#groups.size === 0
  }

  get isFair(): boolean {
    return this.#rules.isFair
  }

  /** The time at which {@link advance} has to be called, in milliseconds since 1970. */
  get nextWake(): number | undefined {
    return this.#waking.first?.wakeAt
  }

  /** Sets the rules. The caller must then enter all jobs again. */
  setRules(rules: LimitRules): void {
    this.#rules = rules
    const listed = [...this.#groups.values()].filter(({ head }) => head !== undefined)
    for (const group of listed) this.#listOf(group).delete(group)
    for (const line of this.#keys.values()) {
      const { rate: former } = line.rule
      line.rule = rules.ruleOf(line.key) ?? {}
      line.refusedUntil = 0
      // The arrival time by the former rate no longer applies. The servers compute that by the new rate, and the next claim returns it.
      const { rate } = line.rule
      if (!rate || !former || !isSameRate(rate, former)) line.arrivalMs = 0
    }
    for (const group of this.#groups.values()) setFairKey(group)
    for (const group of listed) this.#listOf(group).add(group)
    for (const line of this.#keys.values()) this.#wake(line)
  }

  /**
   * Adds a job to its group, if a limit or a hold is set for one of its keys. A cancelled job does not wait for keys that are stopped:
   * it would stay on the board until they are resumed.
   */
  join(place: QueuePlace): void {
    if (this.#rules.isEmpty) return
    const { posting } = place.stored
    const passesStops = place.state === 'waiting' && place.entry.cancelRequested
    const names = toClaimCosts(posting).flatMap(({ key }) => {
      const rule = this.#rules.ruleOf(key)
      return rule && !(passesStops && isStopped(rule)) ? [key] : []
    })
    if (names.length === 0) return
    const queue = queueOf(posting)
    const sorted = names.length === 1 ? (names[0] ?? '') : JSON.stringify(names.sort())
    const id = queue === DEFAULT_QUEUE ? sorted : JSON.stringify({ queue, sorted })
    const group = this.#groups.get(id) ?? this.#newGroup(id, { queue, names })
    group.members += 1
    this.#groupOf.set(place, group)
  }

  /** Returns whether the job is in a group. */
  has(place: QueuePlace): boolean {
    return this.#groupOf.has(place)
  }

  /** Returns whether the job waits for a key that is stopped. */
  isStopped(place: QueuePlace): boolean {
    return this.#keysOf(place).some(({ rule }) => isStopped(rule))
  }

  /** Removes a job from its group. Before, it must be neither offered nor counted. */
  quit(place: QueuePlace): void {
    const group = this.#groupOf.get(place)
    if (!group) return
    this.#groupOf.delete(place)
    group.members -= 1
    if (group.members > 0) return
    this.#groups.delete(group.id)
    for (const line of group.keys) {
      line.groups.delete(group)
      if (line.groups.size > 0) continue
      this.#keys.delete(line.key)
      this.#awake.delete(line)
      this.#unreported.delete(line)
      this.#waking.delete(line)
    }
  }

  /** Counts a claimed job: it takes a slot of each of its keys. */
  occupy(place: QueuePlace): void {
    for (const line of this.#keysOf(place))
      this.#recount(line, () => {
        line.used += 1
        line.lastStart = this.#nextStart()
      })
  }

  /** Stops counting a job that {@link occupy} has counted: its claim has ended. */
  free(place: QueuePlace): void {
    for (const line of this.#keysOf(place)) {
      this.#recount(line, () => {
        line.used -= 1
      })
      this.#wake(line)
    }
  }

  /** Offers a job to searches, or no longer offers it. `isReady`: whether it can be claimed if its limits permit it. */
  show(place: QueuePlace, { isReady }: { readonly isReady: boolean }): void {
    const group = this.#groupOf.get(place)
    if (group) this.#changeLine(group, () => (isReady ? group.line.add(place) : group.line.delete(place)))
  }

  /** Counts a job whose claim is tried, until {@link unreserve}. */
  reserve(place: QueuePlace): void {
    if (!this.has(place) || this.#reserved.has(place)) return
    this.#reserved.add(place)
    this.#countReserved(place, 1)
  }

  /** Stops counting a job that {@link reserve} has counted: its claim was granted, refused or given up. */
  unreserve(place: QueuePlace): void {
    if (!this.#reserved.delete(place)) return
    this.#countReserved(place, -1)
    for (const line of this.#keysOf(place)) this.#wake(line)
  }

  /** Notes the arrival time of a key, from the answer to a granted claim. */
  noteArrival(key: string, arrivalMs: number): void {
    const line = this.#keys.get(key)
    if (line) line.arrivalMs = Math.max(line.arrivalMs, arrivalMs)
  }

  /** Notes that the server has refused a claim because of the key, without the time from which the key has room. */
  noteRefused(key: string, now: number): void {
    const line = this.#keys.get(key)
    if (line) line.refusedUntil = now + REFUSED_PAUSE_MS
  }

  /** Notes the keys that may have room again by now. Returns whether there are any. */
  advance(now: number): boolean {
    let isNoted = false
    for (let line = this.#waking.first; line && line.wakeAt <= now; line = this.#waking.first) {
      this.#waking.delete(line)
      line.wakeAt = Number.POSITIVE_INFINITY
      this.#wake(line)
      isNoted = true
    }
    return isNoted
  }

  /** Returns why the job may not start now; undefined if its limits permit it. */
  blockerOf(place: QueuePlace, now: number): LimitBlocker | undefined {
    for (const line of this.#keysOf(place)) {
      const until = blockedUntil(line, { cost: costOf(place.stored.posting, line), now })
      if (until === undefined) continue
      const { key, rule, used } = line
      return { key, rule, used, ...(until === Number.POSITIVE_INFINITY ? {} : { until }) }
    }
    return undefined
  }

  /** Returns the result of {@link blockerOf}, and sets {@link nextWake} to no later than the time in it. */
  awaitRoom(place: QueuePlace, now: number): LimitBlocker | undefined {
    const blocker = this.blockerOf(place, now)
    const line = blocker?.until === undefined ? undefined : this.#keys.get(blocker.key)
    if (line && blocker?.until !== undefined) this.#wakeAt(line, blocker.until)
    return blocker
  }

  /** Returns the earlier job for which a key of the job keeps its tokens; undefined if there is none. */
  keptFor(place: QueuePlace, now: number): KeptTokens | undefined {
    for (const line of this.#keysOf(place)) {
      const firsts = line.rule.rate ? [...line.groups].flatMap(({ line: { first } }) => first ?? []) : []
      const [first] = firsts.filter((each) => compareClaimOrder(each, place) < 0).sort(compareClaimOrder)
      const until = first && blockedUntil(line, { cost: costOf(first.stored.posting, line), now })
      if (first && until !== undefined) return { key: line.key, rule: line.rule, used: line.used, until, first }
    }
    return undefined
  }

  /** Begins a search for jobs that may start now. */
  search({ now, isWanted }: { readonly now: number; readonly isWanted?: QueueFilter | undefined }): LimitSearch {
    return new LimitSearch({
      ...{ open: this.#open, now, isWanted, keysOf: (place) => this.#keysOf(place) },
      openMore: (times, chosen) => this.#openParked(times, { now, chosen }),
      park: (group, { line, until }, { isTaken }) => {
        if (!isTaken) this.#noteLimited(group, line, { now, until })
        this.#park(group, line, until)
        if (!isTaken) return
        this.#wake(line)
        this.#unreported.add(line)
      },
    })
  }

  /** Notes, for the event `limited`, that jobs wait for a key; the first job of the group is the first of them. */
  #noteLimited(
    group: LimitGroup,
    { key }: KeyLine,
    { now, until }: { readonly now: number; readonly until: number },
  ): void {
    const { first } = group.line
    if (first) this.limited.note({ key, first, until: until === Number.POSITIVE_INFINITY ? undefined : until }, now)
  }

  #keysOf(place: QueuePlace): readonly KeyLine[] {
    return this.#groupOf.get(place)?.keys ?? []
  }

  #newGroup(id: string, { queue, names }: { readonly queue: string; readonly names: readonly string[] }): LimitGroup {
    const keys = names.map((key) => this.#line(key))
    const line = new SortedList<QueuePlace, ClaimOrderKey>(compareClaimOrder)
    const group: LimitGroup = {
      ...{ id, queue, keys, line, members: 0 },
      ...{ head: undefined, parkedUnder: undefined, fairKey: undefined },
    }
    setFairKey(group)
    for (const key of keys) key.groups.add(group)
    this.#groups.set(id, group)
    return group
  }

  #line(key: string): KeyLine {
    const known = this.#keys.get(key)
    if (known) return known
    const line: KeyLine = {
      ...{ key, rule: this.#rules.ruleOf(key) ?? {}, parked: new GroupList() },
      ...{
        groups: new Set<LimitGroup>(),
        turns: new Set<FairTurns>(),
        used: 0,
        lastStart: 0,
        opening: 0,
        reserved: 0,
        reservedTokens: 0,
        arrivalMs: 0,
        refusedUntil: 0,
      },
      wakeAt: Number.POSITIVE_INFINITY,
    }
    this.#keys.set(key, line)
    return line
  }

  #nextStart(): number {
    this.#starts += 1
    return this.#starts
  }

  /** Adds a job to the reserved jobs and tokens of its keys, or subtracts it. */
  #countReserved(place: QueuePlace, times: 1 | -1): void {
    for (const line of this.#keysOf(place)) {
      this.#recount(line, () => {
        line.reserved += times
        if (times === 1) line.lastStart = this.#nextStart()
      })
      line.reservedTokens += times * costOf(place.stored.posting, line)
    }
  }

  /** Changes the counts of a key, and sorts it again where it takes turns. */
  #recount(line: KeyLine, change: () => void): void {
    const turns: readonly FairTurns[] = line.turns.size === 0 ? [] : [...line.turns]
    for (const each of turns) each.withdraw(line)
    change()
    for (const each of turns) each.putBack(line)
  }

  #listOf({ parkedUnder }: LimitGroup): GroupList {
    return parkedUnder?.parked ?? this.#open
  }

  #wake(line: KeyLine): void {
    if (line.parked.size > 0) this.#awake.add(line)
  }

  /** Changes the line of a group. If its head changes, sorts the group again in its list. */
  #changeLine(group: LimitGroup, change: () => void): void {
    const before = group.line.first
    change()
    if (group.line.first === before) return
    const list = this.#listOf(group)
    if (group.head) list.delete(group)
    group.head = group.line.first
    if (group.head) list.add(group)
    else group.parkedUnder = undefined
    if (group.parkedUnder) this.#wakeForCheaperHead(group.parkedUnder)
  }

  /** Makes the next search check the key again: the new head of a group may take fewer tokens than the former one. */
  #wakeForCheaperHead(line: KeyLine): void {
    if (line.rule.rate) this.#awake.add(line)
  }

  #park(group: LimitGroup, line: KeyLine, until: number): void {
    if (!group.head) return
    this.#listOf(group).delete(group)
    group.parkedUnder = line
    line.parked.add(group)
    this.#wakeAt(line, until)
  }

  #wakeAt(line: KeyLine, until: number): void {
    if (until >= line.wakeAt) return
    this.#waking.delete(line)
    line.wakeAt = until
    this.#waking.add(line)
  }

  /** Opens parked groups of keys with room: `times` as many as there is room for. Returns whether any was opened. */
  #openParked(times: number, { now, chosen }: { readonly now: number; readonly chosen: ChosenJobs }): boolean {
    const opened = [...this.#awake].map((line) =>
      // The jobs that were chosen may be refused: then the key is still awake.
      isUsedUp(line, { now, chosen }) ? [] : this.#openParkedOf(line, { most: times * roomOf(line, now), now }),
    )
    return opened.some(({ length }) => length > 0)
  }

  /** Opens up to `most` groups that are parked under a key, and returns them. */
  #openParkedOf(line: KeyLine, { most, now }: { readonly most: number; readonly now: number }): readonly LimitGroup[] {
    const opened: LimitGroup[] = []
    while (opened.length < most) {
      const group = line.parked.first
      if (!group) break
      const blocked = findBlocked(group, { now })
      if (blocked?.line === line) {
        if (this.#unreported.delete(line)) this.#noteLimited(group, line, { now, until: blocked.until })
        this.#park(group, line, blocked.until)
        this.#awake.delete(line)
        break
      }
      // A group that waits for another key takes none of the room: one behind it can have it.
      if (blocked) this.#park(group, blocked.line, blocked.until)
      else {
        line.parked.delete(group)
        group.parkedUnder = undefined
        this.#open.add(group)
        this.#countOpening(group, 1)
        opened.push(group)
      }
    }
    for (const group of opened) this.#countOpening(group, -1)
    if (line.parked.size === 0) this.#awake.delete(line)
    return opened
  }

  /** Counts a group that is being opened as a job that runs: the keys of a fair pattern take turns in being opened. */
  #countOpening({ fairKey }: LimitGroup, times: 1 | -1): void {
    if (!fairKey) return
    this.#recount(fairKey, () => {
      fairKey.opening += times
    })
  }
}

/** Sets the key by which the group takes turns: its first key that matches a fair pattern. */
function setFairKey(group: LimitGroup): void {
  group.fairKey = group.keys.find(({ rule }) => rule.fair !== undefined)
}
