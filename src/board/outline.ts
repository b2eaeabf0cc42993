/**
 * The outline of a posting: what stays in memory of one that was given up to save memory, which is all but its details. That
 * is enough for its place in the queue and for most of what people ask; whoever claims the job reads the posting anew.
 */
import { decode, encode } from '../core/codec.ts'
import type { Stored } from './backend.ts'
import type { Details, Posting } from './posting.ts'

export interface Outline extends Omit<Posting, 'details'> {
  /** Of the details, what names the work. */
  readonly work: Pick<Details, 'flow' | 'version'>
}

/** What was read, and is there in outline only. */
export interface Outlined extends Omit<Stored, 'posting'> {
  readonly posting: Outline
}

type Optional = { [K in keyof Posting]-?: object extends Pick<Posting, K> ? K : never }[keyof Posting]

/** Records, so that the compiler finds what was forgotten here. Fields that nobody here knows are given up too. */
const OPTIONAL: Readonly<Record<Optional, true>> = {
  book: true,
  resources: true,
  backOff: true,
  key: true,
  delay: true,
  deadline: true,
  onOwnerLost: true,
}
const WORK: Readonly<Record<keyof Outline['work'], true>> = { flow: true, version: true }

export function isWhole(stored: Stored | Outlined): stored is Stored {
  return 'details' in stored.posting
}

/** What the job's work is called, whether or not the rest is there. */
export function workOf(posting: Posting | Outline): Outline['work'] {
  return 'details' in posting ? chosen(posting.details, WORK) : posting.work
}

export function outlined(stored: Stored): Outlined {
  const { posting } = stored
  const { uuid, priority, size, maxAttempts, format, runs } = posting
  const kept = { name: posting.name, attempts: posting.attempts, work: workOf(posting), ...chosen(posting, OPTIONAL) }
  // Written and read: texts that were cut out of the whole record would keep it in memory.
  const { name, attempts, work, ...others } = decode(encode(kept, 'msgpack'), 'msgpack') as typeof kept
  const known = { uuid, name, priority, size, maxAttempts, format, runs, attempts, work }
  return { ...stored, posting: Object.assign(known, others) }
}

/** The details that are shown to an `accept` in the place of those that are not in memory. */
const shown = new WeakSet<object>()

/** Whether the posting is an outline, shown to an `accept` to find out whether it can be refused without reading it. */
export function isShownOutline({ details }: Pick<Posting, 'details'>): boolean {
  return shown.has(details)
}

/**
 * Whether `accept` says no. If it looks at anything that an outline has not, or throws at one, it has not said so yet: it is
 * to be asked again, with the whole.
 */
export function isRefused(accept: (posting: Posting) => boolean, posting: Posting | Outline): boolean {
  if ('details' in posting) return !accept(posting)
  const { work, ...rest } = posting
  let lookedFurther = false
  const look = (key: string | symbol) => {
    lookedFurther ||= !Object.hasOwn(WORK, key)
  }
  const details = new Proxy<Details>(work, {
    get: (known, key) => {
      look(key)
      return Reflect.get(known, key)
    },
    has: (known, key) => {
      look(key)
      return Reflect.has(known, key)
    },
    getOwnPropertyDescriptor: (known, key) => {
      look(key)
      return Reflect.getOwnPropertyDescriptor(known, key)
    },
    ownKeys: (known) => {
      lookedFurther = true
      return Reflect.ownKeys(known)
    },
  })
  shown.add(details)
  try {
    return !accept({ ...rest, details }) && !lookedFurther
  } catch {
    return false
  }
}

function chosen<T extends object, K extends keyof T>(from: T, fields: Readonly<Record<K, true>>): Pick<T, K> {
  return Object.fromEntries(Object.entries(from).filter(([field]) => Object.hasOwn(fields, field))) as Pick<T, K>
}
