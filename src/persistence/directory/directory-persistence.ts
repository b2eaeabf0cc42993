/**
 * Logbooks in a folder that the processes of one machine share. There are no locks, and no process has to stay alive:
 * see `layout.ts` for the files and `acquire.ts` for the proof.
 *
 * The costs of the operations (the steps on one line run in parallel):
 *
 *     acquire      fdatasync of the new log (before it, on first use of the book, of its record)
 *                  + fsync of the folders of flow, book, shard and DIR, which is cheap where they are unchanged
 *     write        one fdatasync, shared by all writes that queued up during the previous one
 *     createBook   one fdatasync + fsync of three folders
 *     close        nothing; for a finished flow with a long log, an acquire
 *     updateBook   one fdatasync + one fsync
 *     createFlow   as acquire
 *     destroyBook  one fsync; for a book that is put back, three
 *
 * The files require a local file system with hard links; on a network file system the order of others' changes is not
 * certain.
 */
import { access, constants, lstat, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Lifecycle } from '../../core/async/lifecycle.ts'
import { InvalidState, StorageFailure } from '../../core/errors.ts'
import { assertBookQuery, assertInstant, type BookQuery } from '../book-query.ts'
import type { BookDetail, LogBook, Meta } from '../models.ts'
import type { AcquireRequest, BookRequest, FlowLog, FlowRequest, Persistence } from '../persistence.ts'
import { assertAcquireRequest, assertFlowRequest, assertUuid, noLogbooksError } from '../requests.ts'
import { acquireTerm, compactTerm, startFlow } from './acquire.ts'
import { changeBook, listBooks, listFolders, loadBook, makeBook, removeBook } from './books.ts'
import { DirectoryFlowLog } from './directory-flow-log.ts'
import {
  assertHardLinks,
  createFolder,
  isShared,
  missingAsUndefined,
  retryIfDestroyed,
  syncFolders,
  toErrno,
  toStorageFailure,
  translateErrors,
} from './files.ts'
import { flowFolder } from './layout.ts'

export class DirectoryPersistence implements Persistence {
  readonly uri: string
  readonly #root: string
  readonly #create: boolean
  readonly #shared: boolean
  readonly #lifecycle: Lifecycle
  readonly #logs = new Set<DirectoryFlowLog>()

  /**
   * @param options.root an absolute path, so that a later change of the working directory has no effect
   * @param options.shared whether the group of the folder may read and write the new files
   * @param options.create false for read-only use, which creates no folder and needs no right to write
   */
  constructor(options: { uri: string; root: string; shared?: boolean; create?: boolean }) {
    this.uri = options.uri
    this.#root = options.root
    this.#create = options.create ?? true
    this.#shared = options.shared ?? false
    this.#lifecycle = new Lifecycle(`persistence ${options.uri}`)
  }

  async open(): Promise<void> {
    await this.#lifecycle.start(
      () => translateErrors(`keep logbooks in ${this.uri}`, () => this.#prepare()),
      async () => undefined,
    )
  }

  async #prepare(): Promise<void> {
    if (this.#create) return prepareRoot(this.#root, { mayWrite: true, shared: this.#shared })
    const stats = await missingAsUndefined(stat(this.#root))
    if (!stats) throw noLogbooksError(this.uri, 'no such folder')
    if (!stats.isDirectory()) throw unusableFolderError(this.#root, NO_FOLDER)
    await prepareRoot(this.#root, { mayWrite: false, shared: false })
  }

  close(): Promise<void> {
    return this.#lifecycle.stop(async () => {
      await Promise.all([...this.#logs].map((log) => log.close()))
    })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async createBook(book: BookRequest): Promise<boolean> {
    this.#lifecycle.assertRunning()
    assertUuid(book.uuid, "a book's uuid")
    return translateErrors(`make logbook ${book.uuid}`, async () => {
      const isNew = await retryIfDestroyed(() => makeBook(this.#root, book))
      // A book that is destroyed at once was created nevertheless.
      await missingAsUndefined(syncFolders(listFolders(this.#root, book.uuid)))
      return isNew
    })
  }

  async updateBook(uuid: string, { meta }: { meta: Meta }): Promise<void> {
    this.#lifecycle.assertRunning()
    assertUuid(uuid, "a book's uuid")
    await translateErrors(`change logbook ${uuid}`, () => changeBook(this.#root, uuid, meta))
  }

  async createFlow(request: FlowRequest): Promise<boolean> {
    this.#lifecycle.assertRunning()
    assertFlowRequest(request)
    const { book, flow } = request
    return translateErrors(`make flow ${flow.uuid}`, () =>
      retryIfDestroyed(async () => {
        const folders = await this.#foldersFor({ book, flow })
        const isStarted = await startFlow(folders[0], request)
        await syncFolders(folders)
        return isStarted
      }),
    )
  }

  async acquire(request: AcquireRequest): Promise<FlowLog> {
    this.#lifecycle.assertRunning()
    assertAcquireRequest(request)
    const { book, flow } = request
    const log = await translateErrors(`acquire flow ${flow.uuid}`, () =>
      retryIfDestroyed(async () => {
        const folders = await this.#foldersFor({ book, flow })
        const [folder] = folders
        const acquired = await acquireTerm(folders, request)
        return new DirectoryFlowLog({
          ...{ acquired, request, folder },
          compact: (term) => compactTerm(folders, { request, term }),
          reacquire: () => acquireTerm(folders, request, { isRepeated: true }),
          onClose: () => this.#logs.delete(log),
        })
      }),
    )
    this.#logs.add(log)
    if (this.#lifecycle.state === 'running') return log
    await log.close()
    throw new InvalidState(`persistence ${this.uri} was closed while flow ${flow.uuid} was being acquired`)
  }

  /** Returns the flow's folder and the folders above it; creates the book where it is missing. */
  async #foldersFor({ book, flow }: Pick<FlowRequest, 'book' | 'flow'>): Promise<[string, ...string[]]> {
    await makeBook(this.#root, book)
    const above = listFolders(this.#root, book.uuid)
    const folder = flowFolder(above[0], flow.uuid)
    await createFolder(folder)
    return [folder, ...above]
  }

  async getBook(uuid: string): Promise<LogBook> {
    this.#lifecycle.assertRunning()
    assertUuid(uuid, "a book's uuid")
    return translateErrors(`read logbook ${uuid}`, () => loadBook(this.#root, uuid))
  }

  async *listBooks(query: BookQuery = {}): AsyncIterable<BookDetail> {
    this.#lifecycle.assertRunning()
    assertBookQuery(query)
    try {
      yield* listBooks(this.#root, query)
    } catch (error) {
      throw toStorageFailure(error, `list the logbooks in ${this.uri}`)
    }
  }

  async destroyBook(uuid: string, options: { unchangedSince?: Date } = {}): Promise<boolean> {
    this.#lifecycle.assertRunning()
    assertUuid(uuid, "a book's uuid")
    assertInstant(options.unchangedSince, 'destroyBook')
    return translateErrors(`remove logbook ${uuid}`, () => removeBook(this.#root, uuid, options))
  }
}

async function prepareRoot(root: string, { mayWrite, shared }: { mayWrite: boolean; shared: boolean }): Promise<void> {
  try {
    await assertOwnLink(root)
    if (mayWrite) await createRoot(root, { shared })
    if (shared && !(await isShared(root))) throw unusableFolderError(root, NOT_SHARED)
    await access(root, constants.R_OK | constants.X_OK | (mayWrite ? constants.W_OK : 0))
    if (mayWrite) await assertHardLinks(root)
  } catch (error) {
    const why = FOLDER_ERRORS[toErrno(error) ?? '']
    throw why ? unusableFolderError(root, why, { cause: error }) : error
  }
}

function unusableFolderError(root: string, why: string, options?: ErrorOptions): StorageFailure {
  return new StorageFailure(`cannot keep logbooks in ${root}: ${why}`, options)
}

/**
 * Refuses a link of another user. In a folder where others may write, another user can create a link of this name
 * first, and could read or replace what is written behind it.
 */
async function assertOwnLink(root: string): Promise<void> {
  const stats = await missingAsUndefined(lstat(root))
  if (!stats?.isSymbolicLink() || stats.uid === 0 || stats.uid === process.getuid?.()) return
  throw unusableFolderError(root, `it is a link that another user created (uid ${stats.uid}); name its target folder`)
}

const NOT_SHARED =
  'share=group is set, but its group may not write there, or all users may; chmod 2770 it, or leave share out'

const NO_FOLDER = 'it is a file, or a link to nothing; name a folder'

const FOLDER_ERRORS: Readonly<Record<string, string>> = {
  EEXIST: NO_FOLDER,
  ENOENT: 'it cannot be created there; name another folder',
  ENOTDIR: 'a part of the path is a file; name a folder',
  EACCES: 'permission denied; name a folder that this user may read and write',
  EPERM: 'permission denied; name a folder that this user may read and write',
  EROFS: 'the file system is read-only; name another folder',
}

/**
 * Creates the missing folders of the path, durably. It does not use the recursion of `mkdir`, which never ends below a
 * link to nothing. A parent that may be traversed but not read cannot be synced, and is skipped.
 */
async function createRoot(path: string, options: { shared: boolean }): Promise<void> {
  const above = dirname(path)
  const isNew = await createFolder(path, options).catch(async (error: unknown) => {
    if (toErrno(error) !== 'ENOENT' || above === path) throw error
    await createRoot(above, options)
    return createFolder(path, options)
  })
  if (isNew) await syncFolders([above]).catch(() => undefined)
}
