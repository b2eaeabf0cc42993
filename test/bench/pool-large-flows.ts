/** The flows of many tasks of `bench -- pool`: a module of their own, because it takes children a while to import them. */
import { type AnyTask, input, linear, task, unordered } from 'jobboard'

/** The tasks of each flow. */
export const TASKS = 1_000

const noops = (isolate: boolean): AnyTask[] =>
  Array.from({ length: TASKS }, (_, n) => task(`t${n}`, { isolate, execute: () => undefined }))

export const rowIsolated = linear('row isolated', input(), ...noops(true))
export const rowHere = linear('row here', input(), ...noops(false))
export const manyIsolated = unordered('many isolated', input(), ...noops(true))
export const manyHere = unordered('many here', input(), ...noops(false))
