/**
 * What processes did to the files of a folder, by their system calls; and what of it is on the disk after a power cut.
 *
 * A sync covers the writes that had ended before it began, of all processes, and it counts from its end. Every other write may be on the disk,
 * or not, or in part: a sector has any of the contents that it had since the last sync. Creations and removals of names
 * are durable once their folder was synced. Of later ones, the disk has the first few, in order.
 */
import { basename, dirname } from 'node:path'
import type { Random } from '../../support/random.ts'
import { decode, type SystemCall } from '../../support/strace.ts'

/** The calls that must be traced. */
export const DISK_CALLS = [
  ...['open', 'openat', 'openat2', 'creat', 'lseek', 'write', 'pwrite64', 'writev', 'pwritev', 'pwritev2', 'ftruncate'],
  ...[
    'truncate',
    'fallocate',
    'copy_file_range',
    'sendfile',
    'fsync',
    'fdatasync',
    'sync',
    'syncfs',
    'sync_file_range',
  ],
  ...[
    'unlink',
    'unlinkat',
    'rename',
    'renameat',
    'renameat2',
    'link',
    'linkat',
    'symlink',
    'symlinkat',
    'io_uring_setup',
  ],
]

interface Span {
  readonly begin: number
  readonly end: number
}

type Change = Span & ({ readonly offset: number; readonly data: Buffer } | { readonly size: number })

/** A file, under whichever name. */
interface RecordedFile {
  readonly changes: Change[]
  readonly syncs: Span[]
}

/** A name that a file was given; undefined where the name was removed. */
type Naming = Span & { readonly name: string; readonly file: RecordedFile | undefined }

const SECTOR_BYTES = 512
const DESCRIPTOR = /^(\d+)<([^>]*)>(\(deleted\))?(?:, )?(.*)$/s
const STRING = /"([^"]*)"(\.\.\.)?/

export class RecordedDisk {
  readonly #folder: string
  readonly #names = new Map<string, RecordedFile>()
  readonly #namings: Naming[] = []
  readonly #folderSyncs: Span[] = []
  readonly #files: RecordedFile[] = []
  /** The positions of descriptors, by thread, number and path. */
  readonly #positions = new Map<string, number>()
  /** The line of the first change. */
  readonly begin: number
  /** The line of the last change. */
  readonly end: number

  /** @throws Error for a call that changes files in a way that is not simulated */
  constructor(folder: string, calls: readonly SystemCall[]) {
    this.#folder = folder
    for (const call of calls) if (!(call.result < 0)) this.#add(call)
    const all = this.#files.flatMap(({ changes }) => changes)
    this.begin = this.#namings[0]?.begin ?? 0
    this.end = all.reduce((last, { begin }) => Math.max(last, begin), 0)
  }

  /** Returns the number of completed syncs of files, and of changes. */
  get counts(): { readonly syncs: number; readonly changes: number } {
    const sum = (list: 'syncs' | 'changes') => this.#files.reduce((total, file) => total + file[list].length, 0)
    return { syncs: sum('syncs'), changes: sum('changes') }
  }

  /** Returns the contents of the files on the disk, by their names, after a cut at a line of the trace. */
  cut(at: number, random: Random): Map<string, Buffer> {
    const files = new Map<string, RecordedFile>()
    const begun = this.#namings.filter(({ begin }) => begin <= at)
    const synced = begun.filter(({ end }) => end < coveredBefore(this.#folderSyncs, at)).length
    for (const { name, file } of begun.slice(0, random.between(synced, begun.length))) {
      if (file) files.set(name, file)
      else files.delete(name)
    }
    return new Map([...files].map(([name, file]) => [name, contentAfter(file, at, random)]))
  }

  #add(call: SystemCall): void {
    const { name, args } = call
    if (/^(open|openat|openat2|creat)$/.test(name)) this.#open(call)
    else if (/^unlink(at)?$/.test(name)) this.#name(call, stringOf(args), undefined)
    else if (/^(write|pwrite64|ftruncate|fsync|fdatasync|lseek)$/.test(name)) this.#use(call)
    else if (name !== 'sync_file_range') this.#refuse(call)
  }

  #open(call: SystemCall): void {
    const path = stringOf(call.args)
    if (!this.#isHere(path)) return
    if (/O_D?SYNC|O_TRUNC/.test(call.args)) this.#refuse(call)
    if (!call.args.includes('O_CREAT') || this.#names.has(basename(path))) return
    const file = { changes: [], syncs: [] }
    this.#files.push(file)
    this.#name(call, path, file)
  }

  #name({ begin, end }: Span, path: string, file: RecordedFile | undefined): void {
    if (!this.#isHere(path)) return
    const name = basename(path)
    this.#namings.push({ begin, end, name, file })
    if (file) this.#names.set(name, file)
    else this.#names.delete(name)
  }

  #use(call: SystemCall): void {
    const { name, args, thread, begin, end, result } = call
    const [, descriptor, digits = '', deleted, rest = ''] = DESCRIPTOR.exec(args) ?? []
    const path = decode(digits).toString()
    if (path === this.#folder && name.startsWith('f')) this.#folderSyncs.push(call)
    const file = this.#names.get(basename(path))
    // Nobody finds a file that was removed.
    if (!file || !this.#isHere(path) || deleted) return
    const place = `${thread} ${descriptor} ${digits}`
    if (name === 'lseek') this.#positions.set(place, result)
    else if (name === 'ftruncate') file.changes.push({ begin, end, size: Number(rest) })
    else if (name.startsWith('f')) file.syncs.push(call)
    else {
      const isHere = name === 'pwrite64'
      const offset = isHere ? Number(rest.slice(rest.lastIndexOf(' '))) : this.#positions.get(place)
      if (offset === undefined) throw new Error(`${path} was written to at an unknown position`)
      // Of a call that never ended, everything may have been written.
      const data = decode(stringDigits(rest)).subarray(0, Number.isNaN(result) ? undefined : result)
      if (!isHere) this.#positions.set(place, offset + data.length)
      file.changes.push({ begin, end, offset, data })
    }
  }

  #refuse({ name, args }: SystemCall): void {
    const paths = [...args.matchAll(/["<]((?:\\x[0-9a-f]{2})+)[">]/g)].map(([, digits = '']) =>
      decode(digits).toString(),
    )
    // libuv has a ring for polling, which changes no file; its ring for files is created with SQPOLL.
    const touchesFolder =
      name === 'io_uring_setup' ? args.includes('IORING_SETUP_SQPOLL') : paths.some((path) => this.#isHere(path))
    if (!touchesFolder) return
    throw new Error(`${name} of ${paths.join(', ')} is not simulated: ${args.slice(-200)}`)
  }

  #isHere(path: string): boolean {
    return dirname(path) === this.#folder
  }
}

function stringDigits(args: string): string {
  const [, digits = '', cut] = STRING.exec(args) ?? []
  if (cut) throw new Error('strace has cut a string')
  return digits
}

function stringOf(args: string): string {
  return decode(stringDigits(args)).toString()
}

/** Returns the line of which earlier ends are covered by a sync that had ended at the cut. */
function coveredBefore(syncs: readonly Span[], at: number): number {
  return syncs.reduce((last, { begin, end }) => (end <= at ? Math.max(last, begin) : last), 0)
}

/** Returns what is on the disk of a file. Two images are kept: what processes see, and what the disk has of it. */
function contentAfter({ changes, syncs }: RecordedFile, at: number, random: Random): Buffer {
  const covered = coveredBefore(syncs, at)
  const [seen, disk] = [new Image(), new Image()]
  // Some disks have written almost everything, and some almost nothing.
  const [kept, torn] = [random.next(), random.next()]
  for (const change of changes) {
    if (change.begin > at) break
    const isCovered = change.end < covered
    const isKept = isCovered || random.next() < kept
    if ('size' in change) {
      seen.resize(change.size)
      if (isKept) disk.resize(change.size)
      continue
    }
    const { offset, data } = change
    seen.write(offset, data)
    const [first, last] = [Math.floor(offset / SECTOR_BYTES), Math.floor((offset + data.length - 1) / SECTOR_BYTES)]
    const isTorn = !isCovered && random.next() < torn
    const edge = random.between(first, last)
    const [from, to] = !isTorn ? [first, last] : random.next() < 0.5 ? [first, edge] : [edge, last]
    if (isKept) disk.copySectors(seen, from, to)
    // The size of a file may be on the disk without its content.
    else if (random.next() < 0.1) disk.resize(Math.max(disk.size, seen.size))
  }
  return disk.content
}

/** The bytes of a file; zero where nothing was written. */
class Image {
  #bytes = Buffer.alloc(0)
  size = 0

  get content(): Buffer {
    return this.#bytes.subarray(0, this.size)
  }

  resize(size: number): void {
    if (size < this.size) this.#bytes.fill(0, size, this.size)
    if (size > this.#bytes.length) this.#bytes = Buffer.concat([this.#bytes], 2 * size)
    this.size = size
  }

  write(offset: number, data: Buffer): void {
    this.resize(Math.max(this.size, offset + data.length))
    data.copy(this.#bytes, offset)
  }

  copySectors(from: Image, first: number, last: number): void {
    const [begin, end] = [first * SECTOR_BYTES, Math.min((last + 1) * SECTOR_BYTES, from.size)]
    if (end > begin) this.write(begin, from.content.subarray(begin, end))
  }
}
