# The tester of a suite in Ruby: calls of a method that is in another process, and what of test-unit and Minitest data
# sets use.
module RewardkitDriver
  # How a tester ends where no answer can be used, so that it never goes on with a wrong value.
  NO_ANSWER = 71
  NO_JSON = 72
  TESTS_AT_FAULT = 77
  MOST_BYTES = 8 << 20

  @calls = 0
  @cases = []

  class << self
    attr_reader :cases

    def ask(values)
      @to ||= ::IO.for_fd(3, 'w').tap { |output| output.sync = true }
      @from ||= ::IO.for_fd(4, 'r:UTF-8')
      @calls += 1
      @to.write(%({"a":#{encode(values)}}\n))
      line = @from.gets("\n", MOST_BYTES) or exit!(NO_ANSWER)
      value, changed, fault = read(line)
      raise "the method raised: #{fault}" if fault

      changed.each { |index, item| values[index].replace(item) if values[index].respond_to?(:replace) }
      value
    end

    def read(line)
      reply = ::JSON.parse(line, max_nesting: 4 * MOST_DEPTH)
      exit!(NO_JSON) unless reply.key?('e') || reply.key?('v')
      [decode(reply['v']), (reply['a'] || []).map { |index, item| [Integer(index), decode(item)] }, reply['e']]
    rescue ::StandardError, ::SystemStackError
      exit!(NO_JSON)
    end

    # Runs tests; an end without a call shows nothing.
    def test
      yield
      @cases.each { |kind| run(kind) }
    rescue ::Exception => e
      warn e.full_message unless e.is_a?(::SystemExit)
      exit!(@calls.zero? ? TESTS_AT_FAULT : 1) unless e.is_a?(::SystemExit) && e.success?
    ensure
      $stdout.flush
      exit!(@calls.zero? ? TESTS_AT_FAULT : 0)
    end

    def run(kind)
      kind.instance_methods.grep(/\Atest/).sort.each do |name|
        test = kind.new
        test.setup
        test.send(name)
        test.teardown
      end
    end
  end

  class Failure < ::StandardError; end

  class Case
    def self.inherited(kind)
      super
      RewardkitDriver.cases << kind
    end

    def initialize(*) = nil
    def setup = nil
    def teardown = nil
    def assert(is_true, *reason) = is_true || raise(Failure, "assertion failed #{reason.first}")
    def refute(is_true, *reason) = assert(!is_true, *reason)
    def assert_equal(expected, value, *) = assert(expected == value, "#{value.inspect} for #{expected.inspect}")
    def refute_equal(expected, value, *) = assert(expected != value, "#{value.inspect} in any case")
    def assert_true(value, *) = assert(value == true, value.inspect)
    def assert_false(value, *) = assert(value == false, value.inspect)
    def assert_nil(value, *) = assert(value.nil?, value.inspect)
    def refute_nil(value, *) = refute(value.nil?)
    def assert_empty(value, *) = assert(value.empty?, value.inspect)
    def assert_includes(values, value, *) = assert(values.include?(value), value.inspect)
    def assert_in_delta(expected, value, delta = 0.001, *) = assert((expected - value).abs <= delta, value.inspect)
    def assert_instance_of(kind, value, *) = assert(value.instance_of?(kind), value.inspect)
    def assert_kind_of(kind, value, *) = assert(value.is_a?(kind), value.inspect)
    def assert_match(pattern, value, *) = assert(pattern.match?(value), value.inspect)
    def assert_operator(left, name, right, *) = assert(left.send(name, right), left.inspect)
    def assert_nothing_raised(*) = yield

    def assert_raises(*)
      yield
    rescue ::StandardError => e
      raise if e.is_a?(Failure)

      e
    else
      raise Failure, 'nothing was raised'
    end

    alias assert_not_equal refute_equal
    alias assert_not_nil refute_nil
    alias assert_include assert_includes
    alias assert_raise assert_raises
  end
end

module Test
  module Unit
    TestCase = RewardkitDriver::Case
  end
end

module Minitest
  Test = RewardkitDriver::Case
  Assertion = RewardkitDriver::Failure
end
$LOADED_FEATURES.push('test/unit.rb', 'minitest/autorun.rb', 'minitest.rb')
