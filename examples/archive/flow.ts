/**
 * The flow of one file: hash it, compress it, verify the archive, record it in the manifest.
 *
 * A process can die at any moment, and another one then repeats the task that was under way. So every task is
 * idempotent, and its `revert` removes what it has written.
 */
import { createHash } from 'node:crypto'
import { constants, createReadStream, createWriteStream } from 'node:fs'
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { input, linear, NonRetryable, task } from 'jobboard'

/** The inputs of a job: plain data, which every process can read from the board. */
export interface ArchiveStore {
  readonly source: Source
  readonly target: Target
}

export interface Source {
  /** The absolute path of the folder that is archived. */
  readonly folder: string
  /** The file's path in the folder, in base64: a file name is bytes, which need not be UTF-8. */
  readonly path: string
  /** The same path for people. */
  readonly name: string
}

export interface Target {
  /** The absolute path of the output folder. */
  readonly folder: string
  /** The path relative to the output folder. */
  readonly archive: string
  readonly manifest: string
}

/** One line of `manifest.jsonl`. */
export interface ManifestEntry {
  readonly name: string
  /** The exact path, in base64. */
  readonly path: string
  readonly sha256: string
  readonly bytes: number
  readonly archive: string
  readonly archiveBytes: number
  readonly job: string | undefined
}

interface Original {
  readonly sha256: string
  readonly bytes: number
}

interface Archived {
  readonly bytes: number
}

const hash = task('hash', {
  requires: ['source'],
  provides: 'original',
  execute: async ({ source }: { source: Source }, { signal }): Promise<Original> => {
    const file = await openSource(source)
    return pipeline(file.createReadStream(), fingerprint, { signal })
  },
})

const compress = task('compress', {
  requires: ['source', 'target'],
  provides: 'archived',
  execute: async ({ source, target }: ArchiveStore, { signal }): Promise<Archived> => {
    const archive = join(target.folder, target.archive)
    // A new file, because a former owner that has not noticed its loss yet may still write into the old one.
    await rm(archive, { force: true })
    const file = await openSource(source)
    const archiveStream = createWriteStream(archive, { flags: 'wx', flush: true })
    await pipeline(file.createReadStream(), createGzip(), archiveStream, { signal })
    return { bytes: (await stat(archive)).size }
  },
  revert: ({ target }) => rm(join(target.folder, target.archive), { force: true }),
})

const verify = task('verify', {
  requires: ['original', 'target'],
  execute: async ({ original, target }: { original: Original; target: Target }, { signal }) => {
    const archive = createReadStream(join(target.folder, target.archive))
    const unpacked = await pipeline(archive, createGunzip(), fingerprint, { signal })
    // An ordinary error: the job is reverted and retried, three times in all.
    if (unpacked.sha256 !== original.sha256) throw new Error('it changed while it was being archived')
  },
})

const record = task('record', {
  requires: ['source', 'original', 'archived', 'target'],
  execute: async (args: ArchiveStore & { original: Original; archived: Archived }, { job }) => {
    const { source, original, archived, target } = args
    const entry: ManifestEntry = {
      name: source.name,
      path: source.path,
      sha256: original.sha256,
      bytes: original.bytes,
      archive: target.archive,
      archiveBytes: archived.bytes,
      job: job?.uuid,
    }
    await writeDurably(join(target.folder, target.manifest), `${JSON.stringify(entry)}\n`)
  },
  revert: async ({ target }) => {
    const manifest = join(target.folder, target.manifest)
    await rm(partOf(manifest), { force: true })
    await rm(manifest, { force: true })
  },
})

/** Returns the flow. @param name the name for this run: conductors of other runs on the same board do not know it */
export function archiveFlow(name: string) {
  return linear(name, input<ArchiveStore>(), hash, compress, verify, record)
}

export type ArchiveFlow = ReturnType<typeof archiveFlow>

/** The flags for a file that may have been replaced since the folder was listed: a pipe would block for ever. */
const READ_FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** The codes of a passing shortage of this machine; other errors are about the file. */
const PASSING: ReadonlySet<string | undefined> = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN'])

/** @throws NonRetryable when the file cannot be read: trying again would not help */
async function openSource({ folder, path }: Source): Promise<FileHandle> {
  const file = await open(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(path, 'base64')]), READ_FILE).catch(
    (error: NodeJS.ErrnoException) => {
      if (PASSING.has(error.code)) throw error
      throw new NonRetryable(`it cannot be read: ${systemSays(error)}`)
    },
  )
  if ((await file.stat()).isFile()) return file
  await file.close()
  throw new NonRetryable('it is no regular file any more')
}

/** Returns `ENOENT: no such file or directory`, without the path that Node appends: it may contain any bytes. */
function systemSays(error: Error): string {
  return error.message.split(', ', 1).join()
}

async function fingerprint(chunks: AsyncIterable<Buffer>): Promise<Original> {
  const sha256 = createHash('sha256')
  let bytes = 0
  for await (const chunk of chunks) {
    sha256.update(chunk)
    bytes += chunk.length
  }
  return { sha256: sha256.digest('hex'), bytes }
}

/** Writes the file atomically: it is complete under its name and survives a power cut, or it does not exist. */
async function writeDurably(path: string, text: string): Promise<void> {
  const part = partOf(path)
  await rm(part, { force: true })
  await withFile(part, 'wx', async (file) => {
    await file.writeFile(text)
    await file.sync()
  })
  await rename(part, path)
  await withFile(dirname(path), 'r', (folder) => folder.sync())
}

function partOf(path: string): string {
  return `${path}.part`
}

async function withFile(path: string, flags: string, use: (file: FileHandle) => Promise<void>): Promise<void> {
  const file = await open(path, flags)
  try {
    await use(file)
  } finally {
    await file.close()
  }
}
