/** Reads the values of `jobboard.yaml`: replaces their variables, and checks each by its kind. */
import type { z } from 'zod'
import { InvalidArgument } from '../../../core/errors.ts'
import type { CliContext } from '../../context.ts'
import type { ConfigFile } from './config-file.ts'
import type { Path } from './faults.ts'
import { parseValue } from './kinds.ts'
import { CONFIG, type Config } from './schema.ts'
import { maskSecrets, substituteDeep, substituteVariables } from './variables.ts'
import { type Leaf, mapLeaves } from './walk.ts'

export type Section = keyof Config

/** Reads values of a file. */
export class ConfigValues {
  readonly #file: ConfigFile
  readonly #env: CliContext['env']

  constructor(file: ConfigFile, env: CliContext['env']) {
    this.#file = file
    this.#env = env
  }

  /**
   * Returns a section. Durations are texts or numbers of milliseconds, as a user would type them.
   *
   * @throws InvalidArgument with the place
   */
  section<K extends Section>(name: K): Config[K] {
    const value = this.#file.config[name]
    if (value === undefined) return undefined as Config[K]
    const schema = CONFIG.shape[name] as z.ZodType
    return mapLeaves({ schema, value, path: [name] }, (leaf) => this.read(leaf)) as Config[K]
  }

  /** Returns a single value. @throws InvalidArgument with the place */
  read({ path, value, ...kind }: Leaf): unknown {
    const what = path.join('.')
    if (kind.kind === 'data') return substituteDeep(value, (text) => this.text(text, path))
    const plain = typeof value === 'string' ? this.text(value, path) : value
    try {
      return parseValue(kind, plain, what)
    } catch (error) {
      if (!(error instanceof InvalidArgument)) throw error
      throw this.#file.problem(path, this.#withoutSecrets(error.message, { value, plain }))
    }
  }

  /** Returns the message with the text as it is written, if the value has secret variables. */
  #withoutSecrets(message: string, { value, plain }: { readonly value: unknown; readonly plain: unknown }): string {
    if (typeof value !== 'string' || typeof plain !== 'string') return message
    const masked = substituteVariables(value, maskSecrets(this.#env), (why) => new InvalidArgument(why))
    return masked === plain ? message : message.replaceAll(plain, value)
  }

  /** Returns a text with its variables replaced. @throws InvalidArgument with the place */
  text(text: string, path: Path): string {
    return substituteVariables(text, this.#env, (message) => this.#file.problem(path, message))
  }
}
