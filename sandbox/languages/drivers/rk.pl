# Values of Perl as lines of JSON, and calls of a subroutine of a completion, which is in a file of its own.
package RewardkitDriver;
use strict;
use warnings;
no warnings qw(recursion);

use constant MOST_DEPTH => 100;

# ---- values ----------------------------------------------------------------------------------------------------------

my %ESCAPES = (n => "\n", t => "\t", r => "\r", b => "\b", f => "\f");

# The value that stands at the position of a text of JSON: arrays and hashes by reference, a set as an array.
sub decode {
    my ($text) = @_;
    for ($$text) {
        return undef if /\Gnull/gc;
        return !!1 if /\Gtrue/gc;
        return !!0 if /\Gfalse/gc;
        return unquoted($1) if /\G"((?:[^"\\]++|\\.)*+)"/gcs;
        return 0 + $1 if /\G([-+.\deE]++)/gc;
        if (/\G\[/gc) {
            my @items;
            until (/\G\]/gc) { push @items, decode($text); /\G,/gc }
            return \@items;
        }
        if (/\G\{"(\$\w)":/gc) {
            my $value = tagged($1, decode($text));
            return $value if /\G\}/gc;
        }
    }
    die "a line is no call\n";
}

sub tagged {
    my ($tag, $content) = @_;
    return $content eq 'NaN' ? -sin(9**9**9) : $content eq 'Infinity' ? 9**9**9 : -9**9**9 if $tag eq '$f';
    return 0 + $content if $tag eq '$i';
    return { map { ($_->[0] // '') => $_->[1] } @$content } if $tag eq '$m' || $tag eq '$o';
    return $content;
}

sub unquoted {
    my ($text) = @_;
    $text =~ s/\\u(d[89ab]..)\\u(d[c-f]..)/chr(0x10000 + ((hex($1) & 0x3ff) << 10) + (hex($2) & 0x3ff))/gie;
    $text =~ s/\\(?:u(....)|(.))/defined $1 ? chr hex $1 : $ESCAPES{$2} \/\/ $2/ge;
    return $text;
}

sub encode {
    my ($value, $depth) = @_;
    die "nested too deep\n" if $depth > MOST_DEPTH;
    my $kind = ref $value;
    return 'null' if !defined $value;
    return encode_scalar($value) if !$kind;
    return items($value, $depth) if $kind eq 'ARRAY';
    return '{"$m":' . items([map { [$_, $value->{$_}] } keys %$value], $depth) . '}' if $kind eq 'HASH';
    return $value ? 'true' : 'false' if $kind =~ /Boolean/;
    return '{"$i":"' . $value->bstr . '"}' if $kind eq 'Math::BigInt' && $value->bstr =~ /\A-?\d+\z/;
    return '{"$x":' . encode_text($kind) . '}';
}

sub items {
    my ($list, $depth) = @_;
    return '[' . join(',', map { encode($_, $depth + 1) } @$list) . ']';
}

# A number that is none in its text alone: XOR of such texts is no number.
sub encode_scalar {
    my ($value) = @_;
    no warnings;
    return encode_text($value) if ref \$value ne 'SCALAR' || $value eq '' || $value !~ /\A[-+.\deEInfNa]+\z/ || ($value ^ $value) ne '0';
    return '{"$f":"NaN"}' if $value != $value;
    return $value > 0 ? '{"$f":"Infinity"}' : '{"$f":"-Infinity"}' if $value == $value * 2 && $value != 0;
    return "$value" =~ /\A-?\d{1,18}\z/ ? "$value" : "{\"\$i\":\"$value\"}" if "$value" =~ /\A-?\d+\z/ && $value == int $value;
    my $text = sprintf '%.17g', $value;
    return $text =~ /[.e]/ ? $text : "$text.0";
}

# Text of characters; what is bytes of UTF-8, as functions that encode return it, is read as such.
sub encode_text {
    my ($text) = @_;
    utf8::decode($text) if !utf8::is_utf8($text);
    $text =~ s/([\x00-\x1f"\\])/sprintf '\\u%04x', ord $1/ge;
    utf8::encode($text);
    return qq("$text");
}

# ---- the answerer ----------------------------------------------------------------------------------------------------

sub answer {
    my ($call, $line) = @_;
    my $answer = eval {
        my $values = decode(\$line);
        my @before = map { encode($_, 0) } @$values;
        my @results = $call->(@$values);
        my $value = @results == 1 ? encode($results[0], 0) : '{"$t":' . items(\@results, 0) . '}';
        return "{\"v\":$value}" if grep { defined } @results;
        my @after = map { encode($_, 0) } @$values; # without a result, what it changed is one
        my @changed = grep { unmarked($after[$_]) ne unmarked($before[$_]) } 0 .. $#after;
        $value = 'null' if @changed;
        return "{\"v\":$value,\"a\":[" . join(',', map { "[$_,$after[$_]]" } @changed) . ']}';
    };
    return $answer // '{"e":' . encode_text("$@" || 'it died') . '}';
}

# A text that was used as a number is one for Perl, but no other value.
sub unmarked {
    my ($text) = @_;
    return $text =~ tr/"//dr;
}

# The subroutine of a name: of an owner, or else of main or of another package; of a class with new, its method.
sub find {
    my ($name, @packages) = @_;
    for my $package (@packages) {
        my $call = $package->can($name) or next;
        my $new = $package->can('new') or return $call;
        return sub { $call->($package->new, @_) };
    }
    die "no subroutine $name\n";
}

sub serve {
    my ($name, @packages) = @_;
    open(my $input, '<&=', 3) or die "no calls: $!\n";
    open(my $output, '>&=', 4) or die "no answers: $!\n";
    {
        package main;
        local $@;
        defined(do './completion.pl') or !$@ or die $@;
    }
    my $call = find($name, @packages);
    local ($/, $\, $,) = ("\n", undef, undef);
    while (defined(my $line = <$input>)) {
        local ($@, $_);
        print $output answer($call, $line), "\n";
    }
    close $output or die "no answers: $!\n";
    exit 0;
}

1;
