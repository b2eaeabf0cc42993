/**
 * The schema of `jobboard.yaml`. Texts may contain `${NAME}`, so numbers and words are checked after the substitution.
 */
import { z } from 'zod'
import { LOG_LEVEL_CHOICES, SIZE_CHOICES } from '../choices.ts'

const text = z.string().min(1, 'must not be empty')

const board = z.union([
  text,
  z.strictObject({
    uri: text,
    /** The credentials `user:password`, like JOBBOARD_ZOOKEEPER_AUTH. */
    auth: text.optional(),
    /** The name of one of the persistences, or a URI. */
    persistence: text.optional(),
    flows: text.optional(),
  }),
])

const persistence = z.union([
  text,
  z.strictObject({
    uri: text,
    /** The key, like JOBBOARD_LOGBOOK_KEY. */
    key: text.optional(),
    /** The module, like --codec. */
    codec: text.optional(),
    /** Whether encryption is required, like JOBBOARD_LOGBOOK_REQUIRE. */
    require: z.boolean().optional(),
  }),
])

const positiveInteger = z.int().min(1)
const sizeValue = z.union([positiveInteger, text])
const durationValue = z.union([z.int().min(0), text])

export const CONFIG = z.strictObject({
  boards: z.record(z.string(), board).optional(),
  persistences: z.record(z.string(), persistence).optional(),
  /** The default board: a name, or a URI; or several for `jobboard conductor`. */
  board: z.union([text, z.array(text).min(1)]).optional(),
  persistence: text.optional(),
  flows: text.optional(),
  timeout: durationValue.optional(),
  redact: z.array(text).optional(),
  /** The child processes of `jobboard conductor` and `jobboard run`. */
  pool: z
    .strictObject({
      isolate: z.enum(['declared', 'all']).optional(),
      min: z.int().min(0).optional(),
      max: positiveInteger.optional(),
      maxTasks: positiveInteger.optional(),
      maxAge: durationValue.optional(),
      memory: sizeValue.optional(),
      startTimeout: durationValue.optional(),
      grace: durationValue.optional(),
      maxMessage: sizeValue.optional(),
    })
    .optional(),
  /** The settings of `jobboard conductor`. */
  conductor: z
    .strictObject({
      concurrency: positiveInteger.optional(),
      flowConcurrency: positiveInteger.optional(),
      name: text.optional(),
      size: z.array(z.enum(SIZE_CHOICES)).optional(),
      takeoverDelay: durationValue.optional(),
      defaultDeadline: durationValue.optional(),
      unacceptedAfter: durationValue.optional(),
      drainTimeout: durationValue.optional(),
      abortTimeout: durationValue.optional(),
      onFailure: z.enum(['retry', 'consume']).optional(),
      removeLogbooksAfter: durationValue.optional(),
      removeTrashAfter: durationValue.optional(),
      failuresOnBoard: z.enum(['whole', 'named']).optional(),
      health: z.union([z.int(), text]).optional(),
      logLevel: z.enum(LOG_LEVEL_CHOICES).optional(),
    })
    .optional(),
})

export type Config = z.infer<typeof CONFIG>
