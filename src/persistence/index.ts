/** The public interface of the logbooks. */
export type { BookQuery } from './book-query.ts'
export {
  type CompressionOptions,
  compressed,
  type EncryptionOptions,
  encrypted,
  type LogbookCodec,
  type RecordPlace,
} from './codecs/codecs.ts'
export { type CopiedBooks, copyBooks } from './copy-books.ts'
export type { AtomDetail, BookDetail, FlowDetail, LogBook, Meta, SavedCheckpoint, StateChange } from './models.ts'
export { type OpenPersistenceOptions, openPersistence, openPersistenceOver } from './open.ts'
export type {
  AcquireRequest,
  BookRequest,
  FlowLog,
  FlowRequest,
  Persistence,
  ResultPlace,
  SealableResults,
  Transition,
} from './persistence.ts'
export type { DriverPersistenceOptions } from './postgres/index.ts'
