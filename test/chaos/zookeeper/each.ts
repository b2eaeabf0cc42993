const AT_ONCE = 16

/** Does it for 0, 1, 2, … below a number, some of them side by side. */
export async function forEachBelow(numbers: number, attempt: (at: number) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async () => {
    for (let at = next++; at < numbers; at = next++) await attempt(at)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}
