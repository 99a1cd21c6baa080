/** The little of Node that tests use. */
declare module "node:test" {
  export default function test(name: string, run: () => void | Promise<void>): void;
}
declare module "node:assert/strict" {
  interface Assert {
    equal(a: unknown, b: unknown, message?: string): void;
    deepEqual(a: unknown, b: unknown, message?: string): void;
    ok(value: unknown, message?: string): void;
    rejects<E>(what: Promise<unknown>, check: (error: E) => boolean): Promise<void>;
  }
  const assert: Assert;
  export default assert;
}
