/**
 * A leader, a follower and a client of the follower, with a network between them that delivers in order, but when it likes
 * and with an end that nobody foresees. Time goes by in steps; everything that has arrived is dealt with in each.
 */
import type { Instant } from '../../../src/core/time.ts'
import { Lease, type LeaseTerms } from '../../../src/zookeeper/session/lease.ts'
import type { Random } from '../../support/random.ts'

type Kind = 'read' | 'sync' | 'write'

interface Asked {
  readonly kind: Kind
  readonly sentAt: Instant
}

/** One direction. */
class Line<T> {
  readonly #waiting: { readonly at: number; readonly what: T }[] = []
  #held = 0

  /** Nothing arrives before. */
  hold(until: number): void {
    this.#held = until
  }

  send(what: T, at: number): void {
    this.#waiting.push({ at, what })
  }

  arrived(now: number): T[] {
    if (now < this.#held) return []
    const behind = this.#waiting.findIndex(({ at }) => at > now)
    return this.#waiting.splice(0, behind < 0 ? this.#waiting.length : behind).map(({ what }) => what)
  }
}

export class Model {
  readonly #terms: LeaseTerms
  readonly #random: Random
  readonly #now = { monotonic: 0, wall: 0 }
  readonly #lease: Lease
  readonly #toFollower = new Line<Asked>()
  readonly #toClient = new Line<Asked>()
  readonly #toLeader = new Line<Asked | 'touched' | 'untouched'>()
  readonly #fromLeader = new Line<Asked | 'who was there?'>()
  #touched = false
  /** When the leader last heard of the session. */
  #heardOfAt = 0
  #nextQuestion: number

  constructor(terms: LeaseTerms, random: Random) {
    this.#terms = terms
    this.#random = random
    this.#nextQuestion = random.between(0, terms.tick / 2)
    this.#lease = new Lease(terms, { at: this.#instant(), through: 'leader' }, () => this.#instant())
  }

  /** Milliseconds from now to when the client stops to believe in its session; it keeps a margin beside that. */
  get believed(): number {
    return this.#lease.remainingMs
  }

  /** The same without the margin, which is there for other things. */
  get known(): number {
    return this.believed + Math.min(this.#terms.tick, this.#terms.timeout / 5)
  }

  /** Milliseconds from now to when the leader ends the session, if it hears nothing any more. */
  get granted(): number {
    return this.#heardOfAt + this.#terms.timeout - this.#now.monotonic
  }

  ask(kind: Kind): void {
    const { monotonic } = this.#now
    this.#toFollower.send({ kind, sentAt: this.#instant() }, monotonic + this.#way())
  }

  /** Holds back what goes in one direction. */
  stall(direction: 'to the follower' | 'to the client' | 'to the leader' | 'from the leader', ms: number): void {
    const line = {
      'to the follower': this.#toFollower,
      'to the client': this.#toClient,
      'to the leader': this.#toLeader,
      'from the leader': this.#fromLeader,
    }[direction]
    line.hold(this.#now.monotonic + ms)
  }

  step(): void {
    this.#now.monotonic++
    this.#now.wall++
    const { monotonic: now } = this.#now
    if (now >= this.#nextQuestion) {
      this.#fromLeader.send('who was there?', now + this.#way())
      this.#nextQuestion = now + this.#terms.tick / 2
    }
    for (const asked of this.#toFollower.arrived(now)) this.#followerHears(asked)
    for (const said of this.#fromLeader.arrived(now)) this.#followerIsTold(said)
    for (const said of this.#toLeader.arrived(now)) this.#leaderHears(said)
    for (const answered of this.#toClient.arrived(now)) this.#clientHears(answered)
  }

  #followerHears(asked: Asked): void {
    this.#touched = true
    const at = this.#now.monotonic + this.#way()
    if (asked.kind === 'read') this.#toClient.send(asked, at)
    else this.#toLeader.send(asked, at)
  }

  #followerIsTold(said: Asked | 'who was there?'): void {
    const at = this.#now.monotonic + this.#way()
    if (said === 'who was there?') {
      this.#toLeader.send(this.#touched ? 'touched' : 'untouched', at)
      this.#touched = false
    } else this.#toClient.send(said, at)
  }

  #leaderHears(said: Asked | 'touched' | 'untouched'): void {
    if (said === 'touched') this.#heardOfAt = this.#now.monotonic
    else if (said !== 'untouched') this.#fromLeader.send(said, this.#now.monotonic + this.#way())
  }

  #clientHears({ kind, sentAt }: Asked): void {
    if (kind === 'read') this.#lease.replyReceived(sentAt)
    if (kind === 'sync') this.#lease.echoReceived(sentAt)
    if (kind === 'write') this.#lease.proofReceived(sentAt)
  }

  #instant(): Instant {
    return { ...this.#now }
  }

  /** How long anything is on its way. */
  #way(): number {
    return this.#random.between(0, 10)
  }
}
