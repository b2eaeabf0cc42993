/** Codecs that open sealed logbooks: a key in the environment, or a codec in a module. */
import { InvalidArgument } from '../../core/errors.ts'
import { exportNamed } from '../../core/module-exports.ts'
import type { LogbookCodec } from '../../persistence/index.ts'
import type { CliContext } from '../context.ts'
import { loadModule } from './import-module.ts'
import type { SharedOptions } from './shared-options.ts'

export interface WithCodec {
  readonly codec?: LogbookCodec | readonly LogbookCodec[]
}

/**
 * Returns the codec of JOBBOARD_LOGBOOK_KEY or `--codec`; an undefined one if neither is set.
 *
 * @throws InvalidArgument if both are set, for invalid keys, and for a module without a codec
 */
export async function openCodec(options: SharedOptions, context: CliContext): Promise<WithCodec> {
  const module = options.codec || context.env['JOBBOARD_CODEC']
  const keys = context.env['JOBBOARD_LOGBOOK_KEY']
  if (module && keys)
    throw new InvalidArgument(
      'JOBBOARD_LOGBOOK_KEY and --codec both define how logbooks are sealed; remove one of them',
    )
  if (module) return { codec: await fromModule(module, context) }
  return keys ? { codec: await fromKeys(keys, isEncryptionRequired(context)) } : {}
}

/**
 * Returns whether results that are not encrypted are refused.
 *
 * @throws InvalidArgument for a word that is neither true nor false: a misspelt one must not disable the check
 */
function isEncryptionRequired({ env }: CliContext): { readonly require: boolean } {
  const word = env['JOBBOARD_LOGBOOK_REQUIRE'] || 'true'
  if (word === 'true' || word === 'false') return { require: word === 'true' }
  throw new InvalidArgument(`JOBBOARD_LOGBOOK_REQUIRE must be true or false, got ${JSON.stringify(word)}`)
}

/** Makes a codec from keys: the first one encrypts, all of them decrypt. */
async function fromKeys(text: string, options: { readonly require: boolean }): Promise<LogbookCodec> {
  const { encrypted } = await import('../../persistence/index.ts')
  const [key = '', ...oldKeys] = text.split(',').map((each) => each.trim())
  try {
    return encrypted({ key, oldKeys, ...options })
  } catch (cause) {
    const how = 'as openssl rand -base64 32 makes them; separate several with commas, the one that encrypts first'
    throw new InvalidArgument(`JOBBOARD_LOGBOOK_KEY must be the base64 of 32 bytes, ${how}`, { cause })
  }
}

async function fromModule(module: string, context: CliContext): Promise<LogbookCodec | readonly LogbookCodec[]> {
  const codec = exportNamed(await loadModule(module, context), 'codec')
  if (codec !== undefined) return codec as LogbookCodec | readonly LogbookCodec[]
  throw new InvalidArgument(
    `module ${module} has no codec; export one by that name, as in: export const codec = [compressed(), encrypted({ key })]`,
  )
}
