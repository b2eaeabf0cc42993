/** Runs in a worker thread: computes, and reports the result. It is plain JavaScript, which Node loads as it is. */
import { parentPort, workerData } from 'node:worker_threads'

let count = 0
for (let number = 2; number < workerData; number += 1) if (isPrime(number)) count += 1
parentPort?.postMessage(count)

function isPrime(number) {
  for (let divisor = 2; divisor * divisor <= number; divisor += 1) if (number % divisor === 0) return false
  return true
}
