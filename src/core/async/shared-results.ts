/**
 * The results of requests that are made together. They share one promise: a promise for each request would be the largest part of the cost of
 * hundreds of claims.
 */
import { type Result, toFailed } from '../result.ts'

export class SharedResults<T> {
  /** Resolves with a result for each request when all requests are settled. */
  readonly settled: Promise<Result<T>[]>
  readonly #results: (Result<T> | undefined)[]
  readonly #resolve: (results: Result<T>[]) => void
  #left: number

  constructor(count: number) {
    this.#results = new Array<Result<T> | undefined>(count).fill(undefined)
    this.#left = count
    let resolve: (results: Result<T>[]) => void = () => undefined
    this.settled = new Promise((onSettled) => {
      resolve = onSettled
    })
    this.#resolve = resolve
    if (count === 0) resolve([])
  }

  /** Settles the request with this index; does nothing if it is settled already, as a promise. */
  settle(index: number, result: Result<T>): void {
    if (this.#results[index] !== undefined) return
    this.#results[index] = result
    this.#left -= 1
    if (this.#left === 0) this.#resolve(this.#results.filter((each) => each !== undefined))
  }

  /** Settles the request with this index. A value that is a promise is awaited first. */
  resolve(index: number, value: T | Promise<T>): void {
    if (!(value instanceof Promise)) this.settle(index, { value })
    else
      value.then(
        (awaited) => this.settle(index, { value: awaited }),
        (error: unknown) => this.settle(index, toFailed(error)),
      )
  }
}
